import threading
from datetime import UTC, datetime

import pytest

from drumline.clock import ManualClock
from drumline.errors import SchemaMismatch
from drumline.model.query import JobFilter
from drumline.policy.durability import check_durability
from drumline.stores.base import Store
from tests.support.build import done, new_job
from tests.support.makers import Maker, chosen
from tests.support.promises import promises
from tests.support.rig import Rig, new_rig
from tests.support.waiting import run_together

AGING = [maker for maker in chosen() if maker.age is not None]


@promises("Store", "The durable state of one fleet")
def test_jobs_are_there_for_whoever_opens_the_store_later(rig):
    job_id = rig.add()
    rig.store.close().run()
    assert [job.id for job in rig.another().jobs(JobFilter()).run().items] == [job_id]


@promises("Store", "with one clock")
def test_all_handles_tell_the_same_time(rig):
    rig.advance(12.345)
    assert rig.another().now().run() == rig.store.now().run() == rig.now()


def test_a_store_says_of_which_kind_it_is(rig):
    assert rig.store.kind in {"memory", "sqlite", "postgres", "redis"}


@promises("base", "The store protocol: the one seam between Drumline and where its state lives.")
@promises(
    "base",
    "There are no optional methods and no capability flags",
    "a store passes the conformance suite or is not a store",
)
def test_a_store_has_every_method_of_the_protocol(rig):
    expected = {name for name in vars(Store) if not name.startswith("_")}
    assert expected - set(dir(rig.store)) == set()


@promises("migrate", "Bring the schema to this version")
def test_a_migrated_store_may_be_migrated_again_and_keeps_its_jobs(rig):
    job_id = rig.add()
    rig.store.migrate().run()
    rig.another().migrate().run()
    assert rig.ids() == [job_id]


@promises("migrate", "under a lock: of many processes at once, one migrates")
def test_many_who_migrate_at_once_do_not_disturb_each_other(maker, tmp_path):
    rig = Rig(maker, maker.address(tmp_path), ManualClock())
    try:
        stores = [rig.store, *(rig.another() for _ in range(7))]
        run_together(*(store.migrate().run for store in stores))
        run_together(*(lambda store=store: store.enqueue([new_job()]).run() for store in stores))
        assert len(rig.jobs()) == 8
    finally:
        rig.close()


@promises(
    "migrate",
    "A schema that is newer than this code, and does not say that it serves it, is refused with SchemaMismatch, and"
    " nothing is changed.",
)
@pytest.mark.parametrize("maker", AGING, ids=lambda maker: maker.name)
def test_a_newer_schema_is_refused_and_left_as_it_is(maker: Maker, tmp_path):
    with new_rig(maker, tmp_path) as rig:
        rig.add()
        rig.store.close().run()
        assert maker.age is not None
        read_all = maker.age(rig.address)
        before = read_all()
        with pytest.raises(SchemaMismatch):
            rig.another().migrate().run()
        assert read_all() == before


@promises("pending", "The migrations that the store has not seen, in their order. Nothing is changed.")
def test_what_is_pending_is_told_and_left_undone_until_somebody_migrates(maker, tmp_path):
    rig = Rig(maker, maker.address(tmp_path), ManualClock())
    try:
        for _ in range(2):
            versions = [migration.version for migration in rig.store.pending().run()]
            assert versions == sorted(versions)
            # What lives in memory has no schema.
            assert bool(versions) is maker.is_shared
        rig.store.migrate().run()
        assert rig.store.pending().run() == []
    finally:
        rig.close()


@promises("pending", "Nothing is changed.")
@pytest.mark.parametrize("maker", AGING, ids=lambda maker: maker.name)
def test_of_a_newer_schema_nothing_is_pending_but_a_refusal(maker: Maker, tmp_path):
    with new_rig(maker, tmp_path) as rig:
        assert maker.age is not None
        maker.age(rig.address)
        with pytest.raises(SchemaMismatch):
            rig.another().pending().run()


@promises(
    "inspect",
    "What the store says of itself that bears on durability, by names of its own kind.",
    "It need not be migrated, and nothing is changed.",
)
def test_a_store_tells_its_facts_before_it_is_migrated_and_stays_as_it_was(maker, tmp_path):
    rig = Rig(maker, maker.address(tmp_path), ManualClock())
    try:
        pending = [migration.version for migration in rig.store.pending().run()]
        facts = rig.store.inspect().run()
        # What lives in memory has nothing to tell.
        assert bool(facts) is maker.is_shared
        assert {type(text) for fact in facts.items() for text in fact} <= {str}
        assert [migration.version for migration in rig.store.pending().run()] == pending
        rig.store.migrate().run()
        assert check_durability(rig.store.kind, rig.store.inspect().run())
    finally:
        rig.close()


@promises("now", "The fleet's clock, cut to whole milliseconds.")
def test_now_is_the_clock_in_whole_milliseconds(rig):
    rig.clock.set(datetime(2026, 3, 4, 5, 6, 7, 123_999, tzinfo=UTC))
    rig.follow()
    assert rig.store.now().run() == datetime(2026, 3, 4, 5, 6, 7, 123_000, tzinfo=UTC)
    assert rig.store.now().run().tzinfo is UTC


def test_now_follows_the_clock_backwards_too(rig):
    before = rig.store.now().run()
    rig.set_back(60)
    assert (before - rig.store.now().run()).total_seconds() == 60


@promises("close", "Give back connections and threads.")
def test_a_closed_store_leaves_no_thread_behind(maker, tmp_path):
    before = set(threading.enumerate())
    with new_rig(maker, tmp_path) as rig:
        rig.end(done)
    assert set(threading.enumerate()) - before == set()


@promises("close", "A closed store opens again when it is used.")
def test_a_closed_store_opens_again_when_it_is_used(rig):
    job_id = rig.add()
    rig.store.close().run()
    assert rig.ids() == [job_id]
    rig.store.close().run()
    rig.store.close().run()
    assert rig.take_one().id == job_id
