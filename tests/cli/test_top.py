import os
import pty
import select
import subprocess
import sys
import time

from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.query import PauseKind
from drumline.model.replica import ReplicaInfo
from drumline.stores.sqlite import SqliteStore
from tests.support.build import BY, TASK, new_job, new_schedule


def fill(shop) -> None:
    store = SqliteStore(shop.folder / "drumline.db")
    store.migrate().run()
    store.beat(ReplicaInfo(id="web-1:abc", name="web-1", slots=7), []).run()
    store.enqueue([new_job(queue="mail"), new_job(queue="mail")]).run()
    store.declare([new_schedule()], by=BY).run()
    store.close().run()


def test_one_picture_shows_queues_schedules_and_replicas(shop):
    fill(shop)
    answer = shop.run("top", "--once", "--store", shop.store)
    assert answer.code == 0
    assert "2 ready" in answer.out
    assert "web-1" in answer.out
    assert "mail" in answer.out
    assert "every 1m" in answer.out


def test_in_eighty_columns_no_head_and_no_time_is_cut(shop, monkeypatch):
    fill(shop)
    store = SqliteStore(shop.folder / "drumline.db")
    claimed = store.claim("web-1:abc", [Share(ANY_QUEUE, 1)], 1, [TASK], "token").run()
    store.pause(PauseKind.QUEUE, ["mail"], paused=True, by=BY, token="pause").run()
    store.close().run()
    assert len(claimed.claims) == 1
    monkeypatch.setenv("COLUMNS", "80")
    shown = shop.run("top", "--once", "--store", shop.store).out
    assert "queue          ready  delayed  running  dead  1h done  failed  wait p95  run p95" in shown
    assert "mail (paused)" in shown
    assert f"{claimed.claims[0].claimed_at:%m-%d %H:%M:%S}Z" in shown


def test_without_a_terminal_one_picture_must_be_asked_for(shop):
    answer = shop.run("top", "--store", shop.store)
    assert answer.code == 2
    assert "--once" in answer.err


def test_in_a_terminal_it_lives_until_q_is_pressed_and_gives_the_terminal_back(shop):
    fill(shop)
    master, slave = pty.openpty()
    command = [sys.executable, "-c", "from drumline.cli import main; main()", "top", "--store", shop.store]
    program = subprocess.Popen(
        [*command, "--every", "0.2"], stdin=slave, stdout=slave, stderr=slave, env=os.environ | {"TERM": "xterm"}
    )
    try:
        _read_until(master, b"web-1")
        os.write(master, b"q")
        # The alternate screen is left.
        _read_until(master, b"\x1b[?1049l")
        assert program.wait(20) == 0
    finally:
        program.kill()
        program.wait()
        os.close(master)
        os.close(slave)


def _read_until(terminal: int, words: bytes) -> None:
    """Read what is shown until these bytes were."""
    shown, end = b"", time.monotonic() + 30
    while words not in shown:
        assert select.select([terminal], [], [], max(end - time.monotonic(), 0))[0], f"{words!r} is not in {shown!r}"
        shown += os.read(terminal, 65_536)
