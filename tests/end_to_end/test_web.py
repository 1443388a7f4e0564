"""The pages in real processes: served, and left in good order."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing

import pytest

from tests.end_to_end.band import linger, play
from tests.end_to_end.fleet import COMMAND, Fleet, fleet, until
from tests.end_to_end.homes import SqliteHome
from tests.end_to_end.webapp import TOKEN as TOKEN_OF_THE_APP
from tests.web.shapes import OF_A_SCHEDULE, OF_A_TASK

TOKEN = re.compile(r"http://127\.0\.0\.1:(\d+)/admin/jobs/\?token=(\S+)")


@pytest.fixture
def band(tmp_path):
    with fleet(tmp_path, SqliteHome(tmp_path)) as running:
        yield running


@pytest.fixture
def band_anywhere(tmp_path, home):
    """The band on each kind of store."""
    with fleet(tmp_path, home) as running:
        yield running


class Pages:
    """A process that serves pages at a private address."""

    def __init__(self, band: Fleet, *words: str, **settings: str) -> None:
        others = len(TOKEN.findall(band.log()))
        self.process = band.launch([*COMMAND, *words, "--web", "127.0.0.1:0", "--dev"], **settings)
        until(lambda: len(TOKEN.findall(band.log())) > others, "it has said where the pages are")
        port, self.token = TOKEN.findall(band.log())[-1]
        self.port = int(port)
        until(lambda: self.get("/startup")[0] == 200, "it has started")

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except ConnectionError:
            return 0, ""
        finally:
            connection.close()


class Server:
    """A web server of its own, with the program of `webapp` in it."""

    def __init__(self, band: Fleet, **settings: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        words = ["uvicorn", "tests.end_to_end.webapp:app", "--port", str(self.port)]
        self.process = band.launch([sys.executable, "-m", *words], **settings)
        until(lambda: self.ask("GET", "/actuator/live") == 200, "it serves")

    def ask(self, method: str, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path)
            return connection.getresponse().status
        except ConnectionError:
            return 0
        finally:
            connection.close()


def test_a_background_task_outlives_a_crash_right_after_the_response(band_anywhere):
    band = band_anywhere
    server = Server(band)
    assert server.ask("POST", "/play/7") == 200
    server.process.kill()
    assert server.process.wait(10) == -signal.SIGKILL
    assert band.counts().ready == 1
    Server(band, TEST_ROLE="combined")
    until(lambda: band.counts().done == 1, "the job is done after a restart")
    assert [line[1] for line in band.lines("start")] == ["7"]


def test_run_with_pages_runs_jobs_and_serves_the_words_at_the_root(band):
    pages = Pages(band, "run", band.app)
    band.drum.enqueue_many_sync([play.call(1)])
    until(lambda: band.counts().done == 1, "the job is done")
    assert pages.get("/ready") == (200, "ready\n")
    assert pages.get("/metrics")[0] == 200
    status, text = pages.get("/actuator/jobs")
    assert (status, json.loads(text)["jobs"]["play"]["total_successes"]) == (200, 1)


@pytest.mark.timeout(120)
def test_three_replicas_give_the_same_answers_but_for_their_names(tmp_path, home):
    names = ["web-1", "web-2", "web-3"]
    with fleet(tmp_path, home, "tests.end_to_end.clockwork:drum") as band:
        replicas = [Pages(band, "run", band.app, SCHEDULER__REPLICA_ID=name) for name in names]
        until(lambda: len(band.lines("tick")) >= 3, "it has ticked")
        # From here on nothing moves, so that answers can be compared.
        band.drum.sync.schedules.pause("tick")
        until(lambda: band.counts().unfinished == 0, "all has ended")
        tasks = [json.loads(one.get("/actuator/tasks")[1])["scheduled_tasks"] for one in replicas]
        jobs = [json.loads(one.get("/actuator/jobs")[1]) for one in replicas]
    assert [schedules["tick"].pop("replica_id") for schedules in tasks] == names
    assert tasks[0] == tasks[1] == tasks[2]
    assert jobs[0] == jobs[1] == jobs[2]
    shown = tasks[0]["tick"]
    assert {*shown, "replica_id"} == set(OF_A_SCHEDULE)
    assert set(jobs[0]["jobs"]["tick"]) == set(OF_A_TASK)
    assert set(jobs[0]["queues"]["default"]) >= {"depth", "oldest_waiting_age_ms"}
    assert (shown["schedule"], shown["current_leader"] in names, shown["paused"]) == ("every 1s", True, True)
    assert shown["total_runs"] == jobs[0]["jobs"]["tick"]["total_successes"] >= 3


def test_web_alone_serves_pages_and_runs_no_jobs(band):
    pages = Pages(band, "web", band.app)
    band.drum.enqueue_many_sync([play.call(1)])
    assert pages.get("/ready") == (200, "ready\n")
    assert [replica.info.role for replica in band.replicas()] == ["web"]
    pages.process.terminate()
    assert pages.process.wait(25) == 0
    assert band.counts().ready == 1


def test_without_the_token_nobody_comes_in(band):
    pages = Pages(band, "web", band.app)
    pages.token = "guess"
    assert pages.get("/actuator/jobs")[0] == 401


def test_sigterm_drains_while_the_words_say_so_and_gives_back_without_an_attempt(band):
    pages = Pages(band, "run", band.app, WORKER__SHUTDOWN_TIMEOUT="2s")
    (handle,) = band.drum.enqueue_many_sync([linger.call(60)])
    until(lambda: band.lines("linger"), "it runs")
    asked = time.monotonic()
    pages.process.terminate()
    until(lambda: pages.get("/ready") == (503, "draining\n"), "it says that it drains")
    assert pages.process.wait(25) == 0
    assert time.monotonic() - asked < 15
    job = band.job(handle.id)
    assert (job.state, job.attempt) == ("ready", 0)


def open_stream(port: int, token: str) -> http.client.HTTPConnection:
    """A watcher who has been told something, and stays."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/admin/jobs/api/events", headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    assert (answer.status, answer.readline()) == (200, b"retry: 2000\n")
    return connection


def test_an_open_stream_does_not_hold_up_the_drain(band_anywhere):
    band = band_anywhere
    pages = Pages(band, "run", band.app, WORKER__SHUTDOWN_TIMEOUT="500ms")
    (handle,) = band.drum.enqueue_many_sync([linger.call(60)])
    until(lambda: band.lines("linger"), "it runs")
    with closing(open_stream(pages.port, pages.token)):
        asked = time.monotonic()
        pages.process.terminate()
        assert pages.process.wait(25) == 0
    assert time.monotonic() - asked < 10
    job = band.job(handle.id)
    assert (job.state, job.attempt) == ("ready", 0)


def test_a_web_server_with_an_open_stream_leaves_in_good_order(band_anywhere):
    band = band_anywhere
    server = Server(band, TEST_ROLE="combined", WORKER__SHUTDOWN_TIMEOUT="500ms")
    (handle,) = band.drum.enqueue_many_sync([linger.call(60)])
    until(lambda: band.lines("linger"), "it runs")
    with closing(open_stream(server.port, TOKEN_OF_THE_APP)):
        asked = time.monotonic()
        server.process.terminate()
        assert server.process.wait(25) == 0
    assert time.monotonic() - asked < 10
    assert "Application shutdown complete" in band.log()
    job = band.job(handle.id)
    assert (job.state, job.attempt) == ("ready", 0)
    assert band.replicas() == []


def test_a_second_signal_hurries(band):
    pages = Pages(band, "run", band.app)
    band.drum.enqueue_many_sync([linger.call(60)])
    until(lambda: band.lines("linger"), "it runs")
    pages.process.send_signal(signal.SIGTERM)
    until(lambda: pages.get("/ready")[0] == 503, "it drains")
    pages.process.send_signal(signal.SIGTERM)
    assert pages.process.wait(15) == 0


def test_an_address_in_use_is_said_in_one_sentence(band):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = band.command("web", band.app, "--web", f"127.0.0.1:{port}", "--dev")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"cannot listen on 127.0.0.1" in done.stderr


@pytest.mark.parametrize("words", [("--web", "nowhere"), ("--dev", "--auth", "a:b"), ("--auth", "no_such:thing")])
def test_bad_options_are_said_in_one_sentence(band, words):
    done = band.command("web", band.app, *words)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)


def test_a_hash_is_made_of_a_password_that_is_asked_for(band):
    words = [*COMMAND, "web", "--hash-password"]
    done = subprocess.run(words, input=b"correct horse\ncorrect horse\n", capture_output=True, check=True, timeout=30)
    assert done.stdout.startswith(b"scrypt$")
