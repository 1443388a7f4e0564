"""What the scripts say of themselves, what they leave alone, and what they cost."""

import re
from collections.abc import Iterator
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from drumline.clock import fresh_id
from drumline.model.claim import ANY_QUEUE, Share
from drumline.model.job import WAITING, JobState
from drumline.model.query import Command, CommandKind, JobFilter, Keep
from drumline.stores.redis import RedisStore
from tests.support.build import BY, done, line, new_job, note, unique
from tests.support.valkey import Valkey, new_server, until

FOLDER = Path(str(files("drumline.stores.redis.scripts")))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in [*FOLDER.glob("*.lua"), *FOLDER.glob("parts/*.lua")]}
KEY = re.compile(r"(?:base|KEYS\[1\]) \.\. '(:[a-z_]+)")
HEADER = re.compile(r"\A(?:--.*\n)+")


@pytest.fixture(scope="module")
def server() -> Iterator[Valkey]:
    with new_server("--save", "", "--appendonly", "no") as made:
        yield made


@pytest.fixture
def namespace() -> str:
    return f"t{fresh_id()}"


@pytest.fixture
def store(server: Valkey, namespace: str) -> Iterator[RedisStore]:
    made = RedisStore(server.url, namespace=namespace)
    made.migrate().run()
    yield made
    made.close().run()


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_header_lists_every_key_that_the_script_touches(name):
    header = HEADER.match(TEXTS[name])
    assert header is not None
    touched = {key for key in KEY.findall(TEXTS[name]) if key != ":news"}
    assert {key for key in touched if f"base{key}" not in header[0]} == set()


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_no_number_becomes_text_by_itself(name):
    """`..` and cjson keep 14 digits of a number, and instants in microseconds have 16."""
    code = re.sub(r"--.*", "", TEXTS[name])
    assert "cjson.encode" not in code
    assert "tostring" not in code
    assert not re.search(r"(?:\.\. (?:now|fence)\b|\b(?:now|fence) \.\.)", code)


PAYLOADS = [
    b"",
    b"[]",
    b"{}",
    b'{"a":[],"b":{},"c":[[]]}',
    b"12345678901234567890123456789",
    b"1799999999123456789",
    b"0.1000000000000000055511151231257827",
    b"1e400",
    b"null",
    bytes(range(256)),
    "Grüße \U0001f941".encode(),
    b"x" * 100_000,
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_payloads_come_back_as_they_were_given(store, payload):
    meta: dict[str, Any] = {"empty": [], "none": {}, "big": 2**80, "small": 0.1, "text": "\n\0 é"}
    job = new_job(args=payload, meta=meta, tags=("a b", "é\n"), key=unique("k\n\0 é"))
    store.enqueue([job]).run()
    (claim,) = store.claim("r 1", [Share(ANY_QUEUE, 1)], 1, ["job"], "t").run().claims
    assert (claim.args, claim.meta, claim.tags, claim.key) == (payload, meta, job.tags, "k\n\0 é")
    store.report([note(claim, line(claim, 1, **meta))]).run()
    store.finish([done(claim, result=payload)]).run()
    for where in (JobFilter(ids=(job.id,)), JobFilter(tag="é\n"), JobFilter(key="k\n\0 é")):
        (found,) = store.jobs(where).run().items
        assert (found.args, found.meta, found.result, found.state) == (payload, meta, payload, JobState.DONE)
        assert found.fence == claim.fence > 10**15
    assert [kept.fields for kept in store.logs(job.id).run()] == [meta]


def calls_of_a_claim(server: Valkey, store: RedisStore) -> dict[str, int]:
    """How often each command runs while ten jobs are claimed."""
    with Redis(port=server.port) as client:
        before: Any = client.info("commandstats")
        claims = store.claim("r1:1", [Share(ANY_QUEUE, 10)], 10, ["job"], fresh_id()).run().claims
        after: Any = client.info("commandstats")
    assert len(claims) == 10
    calls = {name: stats["calls"] - before.get(name, {"calls": 0})["calls"] for name, stats in after.items()}
    return {name: number for name, number in calls.items() if number and name != "cmdstat_info"}


def test_a_claim_costs_the_same_however_many_jobs_wait(server, store):
    store.enqueue([new_job() for _ in range(100)]).run()
    few = calls_of_a_claim(server, store)
    for _ in range(3):
        store.enqueue([new_job() for _ in range(10_000)]).run()
    assert calls_of_a_claim(server, store) == few


def test_jobs_of_unknown_tasks_in_front_cost_a_claim_nothing(server, store):
    store.enqueue([new_job() for _ in range(100)]).run()
    few = calls_of_a_claim(server, store)
    store.enqueue([new_job("unknown", priority=9) for _ in range(10_000)]).run()
    assert calls_of_a_claim(server, store) == few


def test_a_small_waiting_job_takes_at_most_512_bytes(server, store):
    number = 20_000
    with Redis(port=server.port) as client:

        def measure() -> int:
            told: Any = client.info("memory")
            return int(told["used_memory_dataset"])

        before = measure()
        for _ in range(0, number, 10_000):
            store.enqueue(
                [new_job(args=b'{"user_id":42,"name":"a name of usual length"}') for _ in range(10_000)]
            ).run()
        # What the server has read is still in its buffers for a moment.
        until(lambda: measure() - before <= 512 * number, "at most 512 bytes for a job")


def test_a_used_token_is_forgotten_by_itself(server, store):
    store.enqueue([new_job()]).run()
    store.claim("r1:1", [Share(ANY_QUEUE, 1)], 1, ["job"], "the token").run()
    with Redis(port=server.port) as client:
        (key,) = client.scan_iter("*:token:the token")
        assert 0 < client.pttl(key) <= 60_000


def test_what_comes_with_a_job_goes_with_it(server, store, namespace):
    store.enqueue([new_job(tags=("t",), key=unique("k"), schedule="s")]).run()
    (claim,) = store.claim("r1:1", [Share(ANY_QUEUE, 1)], 1, ["job"], "token").run().claims
    store.report([note(claim, line(claim, 1), progress=0.5)]).run()
    store.finish([done(claim)]).run()
    store.command(Command(id=fresh_id(), kind=CommandKind.DISCARD, ids=(claim.id,), by=BY)).run()
    nothing = timedelta()
    store.purge(Keep(ticks=nothing, newest_ticks=0, audit=nothing, series=nothing, replicas=nothing)).run()
    base = f"{{{namespace}}}:".encode()
    with Redis(port=server.port) as client:
        left = {key.removeprefix(base) for key in client.scan_iter(base + b"*")}
    assert left == {b"schema", b"birth", b"time", b"totals", b"running_of", b"token:token", b"bell"}


def test_the_few_jobs_that_wait_are_found_behind_many_that_have_ended(server, store):
    waiting = [new_job(priority=-1), new_job("other", delay=60)]
    store.enqueue(waiting).run()
    for _ in range(3):
        store.enqueue([new_job() for _ in range(4_000)]).run()
        claims = store.claim("r1:1", [Share(ANY_QUEUE, 4_000)], 4_000, ["job"], fresh_id()).run().claims
        store.finish([done(claim) for claim in claims]).run()
    page = store.jobs(JobFilter(states=WAITING)).run()
    assert ({job.id for job in page.items}, page.next) == ({job.id for job in waiting}, None)
