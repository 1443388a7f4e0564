"""The compose file: its commands, as processes, on the Postgres of the tests."""

import re
import signal
import subprocess
import tomllib
from functools import partial
from typing import Any

import pytest

from drumline.web import hash_password
from tests.end_to_end.fleet import until
from tests.end_to_end.homes import PostgresHome
from tests.examples.manifests import read_compose, read_seconds
from tests.examples.stage import EXAMPLES, Site, Stage, stage
from tests.support.ports import free_port

COMPOSE = EXAMPLES / "deploy" / "compose.yaml"
DOCKERFILE = EXAMPLES / "deploy" / "Dockerfile"
GUIDE = EXAMPLES.parent / "docs" / "deploy.md"
SECRETS = {"SHOP_PASSWORD_HASH": hash_password("correct horse"), "SHOP_METRICS_TOKEN": "a token of the tests"}

pytestmark = pytest.mark.timeout(240)


def read_service(name: str, port: int = 0) -> dict[str, Any]:
    service: dict[str, Any] = read_compose(COMPOSE, SECRETS | {"PORT": str(port)})[name]
    return service


def own_settings(service: dict[str, Any], shop: Stage) -> dict[str, str]:
    """What the service sets, but for the address of its Postgres."""
    return {**service["environment"], "DRUMLINE_STORE__URL": shop.environment["DRUMLINE_STORE__URL"]}


def is_healthy(service: dict[str, Any], shop: Stage) -> bool:
    kind, *command = service["healthcheck"]["test"]
    assert kind == "CMD"
    return subprocess.run(command, env=shop.environment, check=False, capture_output=True, timeout=60).returncode == 0


def test_three_replicas_start_work_as_one_and_drain(tmp_path):
    with stage("worker", PostgresHome(tmp_path), tmp_path / "log", SECRETS) as shop:
        migrate = read_service("migrate")
        shop.run(*migrate["command"], **own_settings(migrate, shop))

        replicas = [read_service("replica", free_port()) for _ in range(read_service("replica")["deploy"]["replicas"])]
        assert len(replicas) == 3
        processes = [shop.start(*replica["command"], **own_settings(replica, shop)) for replica in replicas]
        for replica in replicas:
            until(partial(is_healthy, replica, shop), "the replica is healthy")

        shop.drum.enqueue_many_sync([shop.drum.stub("send_mail", queue="mail").call(to=str(n)) for n in range(300)])
        until(lambda: shop.done("send_mail") == 300, "all mails are sent")
        until(lambda: shop.done("count_the_till") >= 3, "the schedule fires")
        workers = [one for one in shop.drum.sync.workers() if one.info.role == "combined"]
        assert len(workers) == 3
        shop.run("drumline", "ledger", "verify")

        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process, replica in zip(processes, replicas, strict=True):
            assert process.wait(read_seconds(replica["stop_grace_period"])) == 0, shop.log()


def test_a_replica_that_finds_no_schema_says_so_and_ends(tmp_path):
    with stage("worker", PostgresHome(tmp_path), tmp_path / "log", SECRETS) as shop:
        replica = read_service("replica", free_port())
        assert shop.start(*replica["command"], **own_settings(replica, shop)).wait(60) == 75
        assert "drumline migrate" in shop.log()


def test_the_pages_let_in_whoever_has_the_token(tmp_path):
    port = free_port()
    with stage("worker", PostgresHome(tmp_path), tmp_path / "log", SECRETS) as shop:
        replica = read_service("replica", port)
        shop.start(*replica["command"], **own_settings(replica, shop) | {"DRUMLINE_STORE__AUTO_MIGRATE": "true"})
        site = Site(port, SECRETS["SHOP_METRICS_TOKEN"])
        site.wait("/metrics")
        assert Site(port).ask("GET", "/metrics")[0] == 401


def test_the_metric_that_the_guide_scales_by_has_the_labels_that_it_asks_for(tmp_path):
    port = free_port()
    (expression,) = re.findall(r"^sum\((\w+)\{(.*)\}\)$", GUIDE.read_text(), re.MULTILINE)
    name, labels = expression[0], dict(re.findall(r'(\w+)=~?"([^"]*)"', expression[1]))
    with stage("worker", PostgresHome(tmp_path), tmp_path / "log", SECRETS) as shop:
        shop.drum.sync.queues.pause(labels["queue"])
        shop.drum.enqueue_many_sync([shop.drum.stub("send_mail", queue=labels["queue"]).call(to="ada")])
        replica = read_service("replica", port)
        shop.start(*replica["command"], **own_settings(replica, shop))
        site = Site(port, SECRETS["SHOP_METRICS_TOKEN"])
        site.wait("/metrics")
        lines = [line for line in site.ask("GET", "/metrics")[1].splitlines() if line.startswith(f"{name}{{")]
    found = {dict(re.findall(r'(\w+)="([^"]*)"', line))["state"]: line.split()[-1] for line in lines}
    assert {state: found[state] for state in labels["state"].split("|")} == {"ready": "1.0", "running": "0.0"}


def test_the_image_is_made_of_what_is_there():
    lines = [line.split() for line in DOCKERFILE.read_text().splitlines()]
    copied = [source for word, *words in filter(None, lines) if word == "COPY" for source in words[:-1]]
    assert all((EXAMPLES.parent / source).exists() for source in copied)
    (extras,) = re.findall(r"/src\[([a-z,]+)\]", DOCKERFILE.read_text())
    project = tomllib.loads((EXAMPLES.parent / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()
    assert [words[0] for word, *words in filter(None, lines) if word == "USER"] == ["10001"]


def test_what_is_stopped_has_longer_than_it_takes_to_drain():
    replica = read_service("replica")
    drain = read_seconds(replica["environment"]["DRUMLINE_WORKER__SHUTDOWN_TIMEOUT"])
    assert read_seconds(replica["stop_grace_period"]) > drain + 5


def test_no_image_is_left_to_chance():
    services = read_compose(COMPOSE, SECRETS)
    assert all(":" in one["image"] and not one["image"].endswith(":latest") for one in services.values())


def test_replicas_wait_for_the_migration_and_the_migration_for_the_server():
    assert read_service("replica")["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert read_service("migrate")["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert "healthcheck" in read_service("postgres")
