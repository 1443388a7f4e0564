"""A line whose server is played by the test: what is sent again when a connection is lost in the middle."""

import asyncio
import threading
from collections import deque
from typing import Any

import pytest
from redis import exceptions

from drumline.errors import StoreError
from drumline.stores.redis.calls import Call
from drumline.stores.redis.line import Line
from drumline.stores.redis.scripts import SCRIPTS

pytestmark = pytest.mark.asyncio

NAMES = {script.digest: name for name, script in SCRIPTS.items()}
LOST = exceptions.ConnectionError("lost")
ENQUEUE = Call("enqueue", group=b"\x90", size=1)
CLAIM = Call("claim", (b"",))
CONFIRMED = ["SET", "WAIT"]


class Played:
    """The server and every connection to it; answers as the test has written down, and keeps what was sent."""

    confirm = "replica"
    base = b"{t}"
    shown = "redis://played"

    def __init__(self, *answers: Any) -> None:
        self.answers = deque([b"first", *answers])
        self.sent: list[list[str]] = []
        self.is_busy, self.may_answer = threading.Event(), threading.Event()

    def open(self):
        return self

    def prepare(self, wire): ...

    def check_schema(self, wire, *, will_migrate): ...

    def disconnect(self): ...

    def pack_commands(self, commands):
        return commands

    def send_packed_command(self, commands):
        self.sent.append([NAMES.get(command[1], command[0]) for command in commands])
        self.is_busy.set()

    def read_response(self):
        assert self.may_answer.wait(30)
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer


async def serve(played: Played, *calls: Call) -> list[Any]:
    """The answers to calls that go out together, as they came while the line was busy with another one."""
    line = Line(played, "line", patience=30)  # type: ignore[arg-type]
    line.post(Call("now"))
    assert await asyncio.to_thread(played.is_busy.wait, 30)
    waiting = [line.submit(call) for call in calls]
    played.may_answer.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    await asyncio.to_thread(line.close)
    assert not played.answers
    return answers


async def test_an_enqueue_is_not_accepted_before_it_is_confirmed():
    """It was answered, and the connection was lost before what confirms it came."""
    played = Played([1], LOST, ["claimed"], [["id", "ready", 0]], "OK", 1)
    assert await serve(played, ENQUEUE, CLAIM) == [["id", "ready", 0], ["claimed"]]
    assert played.sent[1:] == [["enqueue", "claim", *CONFIRMED], ["claim", "enqueue", *CONFIRMED]]


async def test_an_enqueue_that_was_refused_is_not_sent_again():
    played = Played(exceptions.ResponseError("no"), LOST, ["claimed"])
    refused, claimed = await serve(played, ENQUEUE, CLAIM)
    assert isinstance(refused, StoreError)
    assert claimed == ["claimed"]
    assert played.sent[1:] == [["enqueue", "claim", *CONFIRMED], ["claim"]]


async def test_all_that_confirms_is_read_though_the_first_of_it_fails():
    (refused,) = await serve(Played([1], exceptions.ResponseError("full"), 1), ENQUEUE)
    assert "full" in str(refused)


class Prompt(Played):
    """One that answers at once, and says which thread has sent."""

    confirm = "server"

    def __init__(self) -> None:
        super().__init__()
        self.by: list[tuple[str, str]] = []
        self._due: deque[str] = deque()

    def send_packed_command(self, commands):
        names = [NAMES.get(command[1], command[0]) for command in commands]
        self.by += [(name, threading.current_thread().name) for name in names]
        self._due.extend(names)

    def read_response(self):
        name = self._due.popleft()
        return [name] if name == "enqueue" else name


HERE = "MainThread"


async def test_a_lone_enqueue_is_sent_by_its_caller_and_nothing_else_is():
    played = Prompt()
    line = Line(played, "line", patience=30)  # type: ignore[arg-type]
    for call, answer in [(CLAIM, "claim"), (ENQUEUE, "enqueue"), (CLAIM, "claim"), (ENQUEUE, "enqueue")]:
        # As long as the thread has not gone to rest, it sends itself.
        assert await line.submit(call) == answer
        await asyncio.sleep(0.01)
    assert [by for name, by in played.by if name == "claim"] == ["line"] * 2
    assert HERE in [by for name, by in played.by if name == "enqueue"]
    await asyncio.to_thread(line.close)


async def test_an_enqueue_behind_another_call_is_sent_once_and_answered_with_its_own():
    played = Prompt()
    line = Line(played, "line", patience=30)  # type: ignore[arg-type]
    for _ in range(300):
        assert await line.submit(ENQUEUE) == "enqueue"
        claimed, made = line.submit(CLAIM), line.submit(ENQUEUE)
        assert (await claimed, await made) == ("claim", "enqueue")
    assert [name for name, _ in played.by].count("claim") == 300
    await asyncio.to_thread(line.close)


async def test_an_enqueue_that_its_caller_cannot_send_is_sent_by_the_thread():
    class Broken(Prompt):
        def send_packed_command(self, commands):
            if threading.current_thread().name == HERE:
                raise LOST
            super().send_packed_command(commands)

    played = Broken()
    line = Line(played, "line", patience=30)  # type: ignore[arg-type]
    for _ in range(5):
        assert await line.submit(ENQUEUE) == "enqueue"
        await asyncio.sleep(0.01)
    assert played.by == [("enqueue", "line")] * 5
    await asyncio.to_thread(line.close)
