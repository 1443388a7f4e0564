"""Hot statements read no more than they need, however many jobs wait and whatever the planner believes of them."""

import statistics
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, LiteralString

import psycopg
import pytest

from drumline.clock import fresh_id
from drumline.model.claim import Share
from drumline.model.query import JobFilter
from drumline.stores.postgres import PostgresStore, beat, finish
from drumline.stores.postgres.claim import Asked, claim, promote, take_new
from drumline.stores.postgres.floors import Floors
from drumline.stores.postgres.plain import enqueue_plain
from drumline.stores.postgres.session import BEGIN_READING
from drumline.stores.postgres.step import Step
from drumline.stores.postgres.ways import WAYS
from drumline.stores.relational import listing
from drumline.stores.relational.fire import fire
from tests.support.build import BY, REPLICA, done, new_job, new_schedule, replica_info, tick_at
from tests.support.plans import Plan, explain
from tests.support.postgres import new_address

LIMIT = 100
NOW = datetime.now(UTC).replace(microsecond=0)
# A row is read once to be locked and once to be changed, and a few more where lanes begin and end.
FEW = 5 * LIMIT

FILL = """
insert into "{namespace}".job (id, queue, task, state, rank, due, term, created, args, options, source)
select gen_random_uuid(), %(queue)s, %(task)s, %(state)s, 0, 1000000000000 + n, 30000, 1000000000000 + n, '{{}}',
  %(options)s, 'manual'
from generate_series(1, %(count)s) as n
"""

END = """
insert into "{namespace}".history (
  id, queue, task, state, due, fence, attempt, created, finished, expires, args, options, source, attempts, closed,
  result_is_repr
)
select gen_random_uuid(), queue, task, 'o', due, 0, 1, created, due, due, args, options, source, '', 0, false
from "{namespace}".job
"""


class Filled:
    """A store with many jobs in it, and a connection that explains."""

    def __init__(self, address: str) -> None:
        url, _, self.namespace = address.partition(" ")
        self.store = PostgresStore(url, namespace=self.namespace)
        self.store.migrate().run()
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)

    def fill(self, count: int, *, task: str = "job", queue: str = "default", state: str = "r") -> None:
        from drumline.model.options import JobOptions, encode_options

        given = {"count": count, "task": task, "queue": queue, "state": state}
        options = encode_options(JobOptions()).decode()
        self.connection.execute(FILL.format(namespace=self.namespace), {**given, "options": options})

    def explain(self, operation: Any, begin: LiteralString = "begin") -> list[Plan]:
        return explain(self.connection, self.store.place, operation, begin)

    def close(self) -> None:
        self.connection.close()
        self.store.close().run()


@pytest.fixture(params=[20_000, pytest.param(1_000_000, marks=[pytest.mark.prove, pytest.mark.timeout(900)])])
def filled(request: pytest.FixtureRequest) -> Iterator[Filled]:
    made = Filled(new_address())
    made.fill(request.param)
    yield made
    made.close()


@pytest.fixture(params=["never analysed", "analysed", "analysed while empty"])
def backlog(request: pytest.FixtureRequest) -> Iterator[Filled]:
    """Many ready jobs, of which the planner knows something, nothing, or something wrong."""
    made = Filled(new_address())
    tables = f'analyze "{made.namespace}".job, "{made.namespace}".history'
    if request.param == "analysed while empty":
        made.connection.execute(tables)
    made.fill(20_000)
    made.fill(2_000, state="d")
    if request.param == "analysed":
        made.connection.execute(tables)
    yield made
    made.close()


def claiming(tasks: tuple[str, ...] = ("job",), queue: str = "*") -> Any:
    asked = Asked(REPLICA, [Share(queue, LIMIT)], LIMIT, tasks, fresh_id(), fresh_id(), Floors())
    return claim(Step(), asked, 0)


@pytest.mark.parametrize("queue", ["*", "default"])
def test_claim_reads_the_beginnings_of_its_lanes_only(filled, queue):
    (plan,) = filled.explain(claiming(queue=queue))
    assert plan.whole_scans() == []
    assert "job_lane" in plan.indexes()
    assert plan.rows_read("job") < FEW


def test_claim_and_promotion_stay_small_whatever_the_planner_believes(backlog):
    plans = backlog.explain(claiming())
    assert len(plans) == 3, "a look, the promotion, another look"
    for plan in (plans[0], plans[2]):
        assert plan.whole_scans() == []
        assert plan.rows_read("job") < FEW
    (promotion,) = backlog.explain(promote())
    assert promotion.whole_scans() == []
    assert promotion.rows_read("job") < 5 * 2_000


def test_finish_and_beat_read_the_claimed_jobs_only(backlog):
    backlog.store.counts().run()
    claims = backlog.store.claim(REPLICA, [Share("*", LIMIT)], LIMIT, ["job"], "t").run().claims
    assert len(claims) == LIMIT
    (plan,) = backlog.explain(finish.finish(Step(), [done(claim) for claim in claims]))
    assert plan.whole_scans() == []
    assert plan.rows_read("job") <= 3 * LIMIT, "locked, moved, deleted"
    (plan,) = backlog.explain(beat.beat(replica_info(), [claim.ref for claim in claims]))
    assert plan.whole_scans() == []
    assert plan.rows_read("job") <= 4 * LIMIT


def test_who_stands_by_reads_the_job_it_hears_of_and_no_other(backlog):
    backlog.store.counts().run()
    job = new_job()
    backlog.store.enqueue([job]).run()
    asked = Asked(REPLICA, [Share("*", 1)], 1, ("job",), fresh_id(), fresh_id(), Floors())
    (plan,) = backlog.explain(take_new(Step(), asked, job.id, 0))
    assert plan.whole_scans() == []
    assert plan.rows_read("job") <= 3, "locked, changed, and the next delayed one"


def test_expired_reads_the_index_of_leases_without_a_sort_of_the_backlog(backlog):
    backlog.store.counts().run()
    backlog.store.claim(REPLICA, [Share("*", LIMIT)], LIMIT, ["job"], "t").run()
    backlog.connection.execute(f'update "{backlog.namespace}".job set lease = 1 where lease is not null')
    (plan,) = backlog.explain(beat.expired(10))
    assert plan.indexes() == {"job_running"}
    assert plan.rows_read("job") <= LIMIT


def test_enqueue_and_fire_look_only_for_their_own_jobs(backlog):
    backlog.store.declare([new_schedule(overlap="skip")], by=BY).run()
    (plan,) = backlog.explain(enqueue_plain(Step(), [new_job() for _ in range(LIMIT)]))
    assert plan.whole_scans() == []
    for plan in backlog.explain(fire(WAYS, Step(), [tick_at(NOW)], "r1:1")):
        assert plan.whole_scans() == []
        assert plan.rows_read() < 10


def test_jobs_of_unknown_tasks_in_front_are_never_read(filled):
    for task in ("unknown", "stranger"):
        filled.fill(20_000, task=task)
    (plan,) = filled.explain(claiming())
    assert plan.rows_read("job") < FEW


def test_several_lanes_are_read_in_parts(backlog):
    for task in ("b", "c", "d"):
        backlog.fill(5_000, task=task)
    backlog.store.counts().run()
    for plan in backlog.explain(claiming(("job", "b", "c", "d"))):
        assert plan.whole_scans() == []
        assert plan.rows_read("job") < 2 * FEW


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_a_claim_of_a_million_costs_no_more_than_one_of_a_thousand():
    few, many = Filled(new_address()), Filled(new_address())
    try:
        few.fill(1_000)
        many.fill(1_000_000)
        ratios = [_millis(many) / _millis(few) for _ in range(25)]
        print(f"a claim of 1,000,000 ÷ one of 1,000: {statistics.median(ratios):.2f}")
        assert statistics.median(ratios) <= 1.5
    finally:
        few.close()
        many.close()


def _millis(filled: Filled) -> float:
    (plan,) = filled.explain(claiming())
    return plan.millis


def in_prepared_statements(connection: psycopg.Connection, place: Any, operation: Any) -> tuple[Any, int, int]:
    """Run the operation by prepared statements; its answer, and the rows of jobs read by scans and by indexes."""
    cursor = connection.cursor()
    answer: Any = None
    with connection.transaction():
        try:
            while True:
                asked = operation.send(answer)
                cursor.execute(place.bind(asked.sql), asked.params, prepare=True)
                answer = cursor.fetchall() if cursor.description is not None else []
        except StopIteration as end:
            cursor.execute(
                "select seq_tup_read, idx_tup_fetch from pg_stat_xact_user_tables "
                "where relname = 'job' and schemaname = %s",
                [place.namespace],
            )
            ((by_scan, by_index),) = cursor.fetchall()
            return end.value, by_scan, by_index


def test_statements_prepared_while_the_table_was_empty_stay_small():
    made = Filled(new_address())
    place = made.store.place
    connection = place.connect()
    connection.execute("set plan_cache_mode = force_generic_plan")
    try:
        in_prepared_statements(connection, place, claiming())
        in_prepared_statements(connection, place, finish.finish(Step(), []))
        in_prepared_statements(connection, place, enqueue_plain(Step(), [new_job()]))
        made.fill(20_000)
        _, by_scan, by_index = in_prepared_statements(
            connection, place, enqueue_plain(Step(), [new_job() for _ in range(LIMIT)])
        )
        assert (by_scan, by_index) == (0, 0)
        claimed, by_scan, by_index = in_prepared_statements(connection, place, claiming())
        assert len(claimed.claims) == LIMIT
        assert by_scan == 0
        assert by_index < FEW
        answers, by_scan, by_index = in_prepared_statements(
            connection, place, finish.finish(Step(), [done(claim) for claim in claimed.claims])
        )
        assert answers == [True] * LIMIT
        assert by_scan == 0
        assert by_index < FEW
    finally:
        connection.close()
        made.close()


def test_a_page_of_all_jobs_reads_no_more_than_a_page_of_each_table(backlog):
    backlog.connection.execute(END.format(namespace=backlog.namespace))
    backlog.connection.execute(f'analyze "{backlog.namespace}".history')
    walk, *_ = backlog.explain(listing.jobs(WAYS, Step(), JobFilter(), None, LIMIT), BEGIN_READING)
    assert walk.whole_scans() == []
    assert walk.rows_read("job", "history") <= 2 * (LIMIT + 1)
