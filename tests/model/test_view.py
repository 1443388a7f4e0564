import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from drumline.model.job import (
    Attempt,
    Enqueued,
    Failure,
    Job,
    JobState,
    Key,
    LogLine,
    NewJob,
    Progress,
    Source,
)
from drumline.model.options import Backoff, JobOptions, Retention
from drumline.model.replica import Replica, ReplicaInfo, ReplicaState
from drumline.model.schedule import Decision, Rule, Tick
from drumline.model.view import (
    enqueued_json,
    instant_text,
    job_json,
    log_json,
    options_json,
    replica_json,
    seconds,
    span_text,
    tick_json,
)

AT = datetime(2026, 5, 5, 14, 0, 0, 7000, tzinfo=UTC)
ID = "0198c0de-0000-7000-8000-000000000001"
OPTIONS = JobOptions("mail", 5, 3, Backoff(steps=(timedelta(seconds=1),)), timedelta(seconds=1.5))


def job(**given: Any) -> Job:
    base = Job(
        id=ID,
        task="send",
        queue="mail",
        state=JobState.READY,
        priority=5,
        attempt=0,
        max_attempts=3,
        fence=0,
        args=b'{"n":9223372036854775808}',
        options=OPTIONS,
        created_at=AT,
        due_at=AT,
    )
    return msgspec.structs.replace(base, **given)


def test_a_waiting_job_has_every_key():
    assert job_json(job()) == {
        "id": ID,
        "task": "send",
        "queue": "mail",
        "state": "ready",
        "priority": 5,
        "args": {"n": 2**63},
        "key": None,
        "tags": [],
        "meta": {},
        "source": "manual",
        "origin": None,
        "schedule": None,
        "tick": None,
        "waits_for": None,
        "attempt": 0,
        "max_attempts": 3,
        "fence": 0,
        "created_at": "2026-05-05T14:00:00.007Z",
        "due_at": "2026-05-05T14:00:00.007Z",
        "claimed_at": None,
        "finished_at": None,
        "expires_at": None,
        "replica": None,
        "lease_until": None,
        "progress": None,
        "result": None,
        "result_is_repr": False,
        "user_error": None,
        "last_error": None,
        "attempts": [],
        "backoff": {"initial": 0.25, "factor": 2.0, "cap": 3600, "jitter": 0.25, "steps": [1]},
        "timeout": 1.5,
        "lease": 30,
        "retention": {"done": 86400, "dead": 604800, "cancelled": 86400},
    }


def test_the_attempt_that_runs_now_stands_among_the_attempts():
    running = job(state=JobState.RUNNING, attempt=2, fence=9, replica="r1:1", claimed_at=AT, lease_until=AT)
    assert job_json(running)["attempts"] == [
        {
            "number": 2,
            "fence": 9,
            "replica": "r1:1",
            "by": None,
            "started_at": "2026-05-05T14:00:00.007Z",
            "ended_at": None,
            "ended": None,
            "error": None,
        }
    ]


def test_an_attempt_that_ended_tells_who_recorded_it_and_why_it_failed():
    failed = Attempt(1, 8, "r1:1", "r2:1", AT, AT, "lost", Failure("WorkerLost", "r1:1 was lost"))
    (shown,) = job_json(job(state=JobState.DEAD, attempts=(failed,)))["attempts"]
    assert (shown["replica"], shown["by"], shown["ended"]) == ("r1:1", "r2:1", "lost")
    assert shown["error"] == {"type": "WorkerLost", "message": "r1:1 was lost", "traceback": ""}
    assert job_json(job(attempts=(failed,)))["last_error"] == "WorkerLost: r1:1 was lost"


def test_result_progress_and_tick_are_values():
    zone = timezone(timedelta(hours=2))
    shown = job_json(
        job(
            result=b'[1,"a"]',
            progress=Progress(0.5, "half way"),
            tick=AT.astimezone(zone),
            source=Source.SCHEDULED,
            tags=("a", "b"),
            meta={"from": "test"},
        )
    )
    assert (shown["result"], shown["progress"]) == ([1, "a"], {"value": 0.5, "message": "half way"})
    assert (shown["tick"], shown["source"]) == ("2026-05-05T14:00:00.007Z", "scheduled")
    assert (shown["tags"], shown["meta"]) == (["a", "b"], {"from": "test"})


def test_the_view_is_plain_json_and_equal_each_time():
    full = job(progress=Progress(0.1), attempts=(Attempt(1, 1, "r", "r", AT, AT, "done"),), result=b"null")
    assert json.dumps(job_json(full)) == json.dumps(job_json(full))


def test_an_enqueue_is_shown_as_it_was_asked_for():
    asked = NewJob(id=ID, task="send", args=b'{"n":1}', options=OPTIONS, key=Key("k"), tags=("a",))
    assert enqueued_json(asked, Enqueued(ID, JobState.READY)) == {
        "id": ID,
        "task": "send",
        "queue": "mail",
        "state": "ready",
        "priority": 5,
        "args": {"n": 1},
        "key": "k",
        "tags": ["a"],
        "created": True,
        "replaced": False,
    }


def test_an_enqueue_without_a_key_shows_none():
    assert enqueued_json(NewJob(id=ID, task="send"), Enqueued(ID, JobState.READY))["key"] is None


def test_a_log_line_is_shown_with_its_fields():
    assert log_json(LogLine(3, AT, "info", "rows read", {"rows": 3}, 2)) == {
        "attempt": 2,
        "number": 3,
        "at": "2026-05-05T14:00:00.007Z",
        "level": "info",
        "message": "rows read",
        "fields": {"rows": 3},
    }


def test_every_option_is_shown():
    shown = options_json(JobOptions(retention=Retention.of("90s")))
    assert list(shown) == ["queue", "priority", "max_attempts", "backoff", "timeout", "lease", "retention"]
    assert shown["timeout"] is None
    assert shown["retention"] == {"done": 90, "dead": 90, "cancelled": 90}


def test_an_instant_is_shown_in_utc_to_the_millisecond():
    assert instant_text(AT.astimezone(timezone(timedelta(hours=-5)))) == "2026-05-05T14:00:00.007Z"


@pytest.mark.parametrize(
    ("span", "number", "text"),
    [
        (timedelta(), 0, "0s"),
        (timedelta(milliseconds=250), 0.25, "250ms"),
        (timedelta(seconds=30), 30, "30s"),
        (timedelta(hours=1, minutes=30), 5400, "1h30m"),
        (timedelta(days=7), 604800, "7d"),
    ],
)
def test_a_span_is_shown_as_a_number_or_as_it_would_be_given(span, number, text):
    assert (seconds(span), span_text(span)) == (number, text)


def test_a_replica_is_shown_with_what_it_holds():
    info = ReplicaInfo(id="web-1:abc", name="web-1", queues=("mail",), slots=3, beat_every=timedelta(milliseconds=500))
    shown = replica_json(
        Replica(info=info, shown="web-1#2", state=ReplicaState.LOST, started_at=AT, seen_at=AT, running=(ID,))
    )
    assert (shown["replica"], shown["id"], shown["state"], shown["running"]) == ("web-1#2", "web-1:abc", "lost", [ID])
    assert (shown["beat_every"], shown["seen_at"]) == (0.5, "2026-05-05T14:00:00.007Z")


def test_a_ledger_row_has_every_key():
    row = Tick(
        schedule="nightly",
        mark="changed:3",
        replica="",
        instant=AT,
        decision=Decision.CHANGED,
        reason="declared",
        by="web-1:abc",
        recorded_at=AT,
        count=0,
        rule=Rule(every=timedelta(seconds=10)),
    )
    shown = tick_json(row)
    assert shown.keys() == {*Tick.__struct_fields__}
    assert (shown["decision"], shown["replica"], shown["instant"]) == ("changed", None, "2026-05-05T14:00:00.007Z")
    assert shown["rule"]["every"] == "PT10S"
    json.dumps(shown)


def test_a_tick_whose_job_has_ended_tells_how():
    row = Tick(
        schedule="nightly",
        mark="1",
        replica="web-1:abc",
        instant=AT,
        decision=Decision.FIRED,
        reason="on time",
        by="web-1:abc",
        recorded_at=AT,
        job_id=ID,
        outcome="done",
        run_time=timedelta(milliseconds=1500),
    )
    shown = tick_json(row)
    assert (shown["job_id"], shown["outcome"], shown["run_time"], shown["rule"]) == (ID, "done", 1.5, None)
