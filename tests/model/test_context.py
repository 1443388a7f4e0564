import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from drumline.errors import BadOption
from drumline.model.context import LEVELS, Context, active, current
from drumline.model.job import Progress, Source


class Noting:
    """A sink that remembers what it was told."""

    def __init__(self) -> None:
        self.stopping = self.cancelled = self.held = False
        self.told: list[Any] = []

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        self.told.append((level, message, dict(fields)))

    def progress(self, progress: Progress) -> None:
        self.told.append(progress)

    def user_error(self, message: str) -> None:
        self.told.append(message)


@contextmanager
def running(context: Context) -> Iterator[None]:
    token = active.set(context)
    try:
        yield
    finally:
        active.reset(token)


def test_a_context_tells_what_it_was_made_of():
    tick = datetime(2026, 1, 1, tzinfo=UTC)
    given: dict[str, Any] = {
        "job_id": "id",
        "task": "job",
        "queue": "q",
        "attempt": 2,
        "max_attempts": 5,
        "fence": 7,
        "tags": ("t",),
        "meta": {"m": 1},
        "source": Source.SCHEDULED,
        "schedule": "tock",
        "tick": tick,
        "state": object(),
    }
    context = Context(**given, sink=Noting())
    assert {name: getattr(context, name) for name in given} == given


def test_what_a_task_says_goes_to_its_sink():
    sink = Noting()
    context = Context(sink=sink)
    context.log("read", rows=3)
    context.log("odd", level="warning")
    asyncio.run(context.progress(0.5, "half way"))
    context.progress_sync(1)
    context.user_error("card refused")
    assert sink.told == [
        ("info", "read", {"rows": 3}),
        ("warning", "odd", {}),
        Progress(0.5, "half way"),
        Progress(1),
        "card refused",
    ]


@pytest.mark.parametrize("flag", ["stopping", "cancelled", "held"])
def test_a_flag_follows_its_sink(flag):
    sink = Noting()
    context = Context(sink=sink)
    assert getattr(context, flag) is False
    setattr(sink, flag, True)
    assert getattr(context, flag) is True


def test_an_unknown_level_is_refused_with_the_known_ones():
    with pytest.raises(BadOption) as raised:
        Context(sink=Noting()).log("x", level="loud")
    assert str(raised.value) == "ctx.log: level must be one of debug, info, warning, error, critical, got 'loud'"


def test_wrong_progress_is_refused():
    with pytest.raises(BadOption, match=r"^progress must be"):
        Context(sink=Noting()).progress_sync(2)


def test_the_current_context_is_that_of_the_job_that_runs_here():
    context = Context(job_id="id")
    with running(context):
        assert current() is context
        assert asyncio.run(ask()) is context
    assert current() is not context


async def ask() -> Context:
    return current()


@pytest.mark.parametrize("level", LEVELS)
def test_outside_a_job_log_lines_go_to_logging(level, caplog):
    with caplog.at_level(logging.DEBUG, logger="drumline.task"):
        current().log("rows read", level=level, rows=3, name_="x")
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("drumline.task", LEVELS[level])
    assert record.getMessage() == "rows read rows=3 name_='x'"


def test_outside_a_job_the_rest_does_nothing():
    context = current()
    context.progress_sync(0.5)
    asyncio.run(context.progress(0.5))
    context.user_error("nobody hears")
    assert (context.stopping, context.cancelled, context.held) == (False, False, True)
    assert (context.job_id, context.attempt, context.meta) == ("", 0, {})
