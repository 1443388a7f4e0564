"""The programs of examples/: they start as they say, and do what they show."""

import signal
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from drumline.clock import fresh_id
from tests.end_to_end.fleet import until
from tests.end_to_end.homes import PostgresHome, ServerHome, SqliteHome
from tests.examples.stage import Site, stage
from tests.support.ports import free_port
from tests.support.postgres import direct, shared_url

TOKEN = "a token of the tests"

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of a database of the test's own: Django's tables have no namespace."""
    url = direct(shared_url())
    name = f"shop_{fresh_id().replace('-', '')}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'create database "{name}"')
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
        connection.execute(f'drop database "{name}" with (force)')


def test_the_worker_runs_jobs_and_fires_its_schedule_until_it_is_stopped(tmp_path):
    with stage("worker", SqliteHome(tmp_path), tmp_path / "log") as shop:
        worker = shop.start("drumline", "run", "jobs:drum")
        shop.run("drumline", "enqueue", "send_mail", '{"to": "ada@example.com"}', "--app", "jobs:drum")
        until(lambda: shop.done("send_mail") == 1, "the mail is sent")
        until(lambda: shop.done("count_the_till") >= 2, "the schedule fires")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0, shop.log()


def test_the_fastapi_app_makes_jobs_of_background_tasks_and_runs_them(tmp_path):
    port = free_port()
    with stage("fastapi_app", SqliteHome(tmp_path), tmp_path / "log", {"SHOP_TOKEN": TOKEN}) as shop:
        server = shop.start("uvicorn", "shop:app", "--port", str(port))
        site = Site(port, TOKEN)
        site.wait("/actuator/ready")
        assert site.post_json("/orders/7", 200) == {"order": 7}
        job = site.post_json("/books/8", 200)["job"]
        assert shop.drum.sync.wait(shop.drum.sync.jobs.get(job), "30s") == "book of order 8"
        until(lambda: shop.done("send_receipt") == 1, "the receipt is sent")
        follow = site.post_json("/tracked/9", 200)["follow"]
        until(lambda: site.get_json(follow)["status"] == "done", "the customer sees that it is done")
        assert site.get_json("/actuator/tasks")["scheduled_tasks"].keys() == {"close_the_day"}
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0, shop.log()


@pytest.mark.parametrize("home", [SqliteHome, PostgresHome])
def test_the_flask_app_enqueues_and_a_worker_runs_the_jobs(tmp_path, home):
    port = free_port()
    with stage("flask_app", home(tmp_path), tmp_path / "log") as shop:
        shop.start("flask", "--app", "shop", "run", "--port", str(port))
        site = Site(port)
        until(lambda: site.ask("GET", "/jobs/none")[0] == 404, "it serves")
        first, second = site.post_json("/orders/7", 202), site.post_json("/orders/7", 202)
        assert first == second
        shop.run("drumline", "worker", "shop:drum", "--drain")
        assert site.get_json(f"/jobs/{first['job']}") == {"state": "done", "result": "receipt of order 7"}


def test_the_django_app_has_its_job_if_and_only_if_it_has_the_order(tmp_path, database):
    port = free_port()
    given = {"DATABASE_URL": database, "DJANGO_SECRET_KEY": TOKEN}
    with stage("django_app", ServerHome(database), tmp_path / "log", given) as shop:
        shop.run(sys.executable, "manage.py", "migrate", "--verbosity", "0")
        shop.run(sys.executable, "manage.py", "makemigrations", "--check")
        shop.start(sys.executable, "manage.py", "runserver", "--noreload", str(port))
        site = Site(port)
        site.wait("/orders")
        site.post_json("/order", 201, {"item": "snare drum"})
        site.post_json("/order", 409, {"item": "triangle"})
        assert site.get_json("/orders")["orders"] == [{"item": "snare drum", "is_confirmed": False}]
        assert shop.drum.sync.counts().total.ready == 1
        shop.run("drumline", "worker", "shop.jobs:drum", "--drain")
        assert site.get_json("/orders")["orders"] == [{"item": "snare drum", "is_confirmed": True}]
