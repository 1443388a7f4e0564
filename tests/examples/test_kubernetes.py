"""The manifests for Kubernetes: they agree with each other, with the commands, and with what the pages serve."""

import re
from typing import Any

import psycopg
import pytest

from drumline.web.actuator import AT_ROOT
from tests.end_to_end.fleet import until
from tests.end_to_end.homes import PostgresHome
from tests.examples.manifests import read_manifests, read_seconds, walk
from tests.examples.stage import EXAMPLES, stage
from tests.house.test_documents import refuse_command

OBJECTS = read_manifests(EXAMPLES / "deploy" / "kubernetes")
BY_KIND = {kind: [one for one in OBJECTS if one["kind"] == kind] for kind in {one["kind"] for one in OBJECTS}}
PODS = [(one["metadata"]["name"], one["spec"]["template"]) for one in BY_KIND["Deployment"] + BY_KIND["Job"]]
SERVING = [(one["metadata"]["name"], one["spec"]["template"]) for one in BY_KIND["Deployment"]]
PROBES = {"startupProbe": "/startup", "readinessProbe": "/ready", "livenessProbe": "/live"}

over_pods = pytest.mark.parametrize(("name", "template"), PODS, ids=[name for name, _ in PODS])
over_serving = pytest.mark.parametrize(("name", "template"), SERVING, ids=[name for name, _ in SERVING])


def containers(template: dict[str, Any]) -> list[dict[str, Any]]:
    return [*template["spec"].get("initContainers", []), *template["spec"]["containers"]]


def settings() -> dict[str, str]:
    (config,) = BY_KIND["ConfigMap"]
    data: dict[str, str] = config["data"]
    return data


@pytest.mark.parametrize("one", OBJECTS, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_an_object_says_what_it_is(one):
    assert one["apiVersion"]
    assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", one["metadata"]["name"])
    assert one["metadata"]["labels"]["app.kubernetes.io/part-of"] == "shop"


@over_pods
def test_every_container_runs_a_command_that_exists(name, template):
    for container in containers(template):
        program, *words = container["command"]
        assert program == "drumline"
        assert refuse_command(tuple(words)) is None


@over_pods
def test_every_container_has_a_pinned_image_resources_and_no_root(name, template):
    assert template["spec"]["securityContext"]["runAsNonRoot"]
    for container in containers(template):
        image, _, tag = container["image"].rpartition(":")
        assert image
        assert tag != "latest"
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
        assert "memory" in container["resources"]["limits"]


@over_pods
def test_all_containers_are_of_one_release(name, template):
    assert {one["image"] for one in containers(template)} == {PODS[0][1]["spec"]["containers"][0]["image"]}


@over_serving
def test_probes_ask_for_words_that_are_served_where_they_are_served(name, template):
    (container,) = template["spec"]["containers"]
    open_words = {entry.path for entry in AT_ROOT if entry.role is None}
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    bound = container["command"][container["command"].index("--web") + 1]
    for probe, path in PROBES.items():
        asked = container[probe]["httpGet"]
        assert asked["path"] == path
        assert path in open_words
        assert bound == f"0.0.0.0:{ports[asked['port']]}"


@over_serving
def test_a_pod_has_longer_than_it_takes_to_drain(name, template):
    (container,) = template["spec"]["containers"]
    waiting = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    drain = read_seconds(settings()["DRUMLINE_WORKER__SHUTDOWN_TIMEOUT"])
    assert template["spec"]["terminationGracePeriodSeconds"] > waiting + drain + 5


@over_serving
def test_a_selector_finds_its_pods(name, template):
    wanted = [
        one["spec"]["selector"]["matchLabels"] for one in BY_KIND["Deployment"] if one["metadata"]["name"] == name
    ]
    assert wanted[0].items() <= template["metadata"]["labels"].items()


def test_the_service_and_the_budget_find_pods_and_their_port():
    (service,), (budget,) = BY_KIND["Service"], BY_KIND["PodDisruptionBudget"]
    (template,) = [
        one for _, one in SERVING if service["spec"]["selector"].items() <= one["metadata"]["labels"].items()
    ]
    names = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= names
    assert budget["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    (deployment,) = [one for one in BY_KIND["Deployment"] if one["spec"].get("replicas")]
    assert budget["spec"]["minAvailable"] < deployment["spec"]["replicas"]


def test_what_is_referred_to_is_there():
    configured = {one["metadata"]["name"] for one in BY_KIND["ConfigMap"]}
    referred = {part["configMapRef"]["name"] for part in walk(OBJECTS) if "configMapRef" in part}
    assert referred == configured
    (scaled,), (known,) = BY_KIND["ScaledObject"], BY_KIND["TriggerAuthentication"]
    assert scaled["spec"]["scaleTargetRef"]["name"] in [name for name, _ in SERVING]
    assert scaled["spec"]["triggers"][0]["authenticationRef"]["name"] == known["metadata"]["name"]


def test_settings_of_the_manifests_are_settings_of_drumline(tmp_path):
    with stage("worker", PostgresHome(tmp_path), tmp_path / "log", settings()) as shop:
        shown = shop.run("drumline", "config", "show")
    assert all(name in shown for name in settings())


def test_the_depth_that_scales_is_that_of_jobs_that_are_due(tmp_path):
    (scaled,) = BY_KIND["ScaledObject"]
    (trigger,) = scaled["spec"]["triggers"]
    assert trigger["type"] == "postgresql"
    home = PostgresHome(tmp_path)
    query = trigger["metadata"]["query"].replace("drumline.", f'"{home.namespace}".')
    with stage("worker", home, tmp_path / "log") as shop, psycopg.connect(home.url, autocommit=True) as connection:

        def depth() -> int:
            row = connection.execute(query, prepare=False).fetchone()
            assert row is not None
            return int(row[0])

        mail = shop.drum.stub("send_mail", queue="mail")
        shop.drum.enqueue_many_sync([shop.drum.stub("add").call(a=1, b=2)])
        assert depth() == 0
        shop.drum.enqueue_many_sync([mail.call(to="ada"), mail.using(delay="1h").call(to="grace")])
        assert depth() == 1
        shop.start("drumline", "worker", "jobs:drum", "--queues", "mail")
        until(lambda: shop.done("send_mail") == 1, "the mail is sent")
        assert depth() == 0
