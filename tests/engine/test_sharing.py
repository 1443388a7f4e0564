"""A worker that shares its slots among queues: by order or weight, within caps, beside reserved slots."""

import asyncio
import random
import threading
from collections import Counter
from functools import partial

import pytest

from drumline.clock import fresh_id
from drumline.errors import BadOption
from drumline.model.claim import ANY_QUEUE
from drumline.model.context import Context
from drumline.model.query import By, PauseKind
from drumline.model.queues import QueueRules
from drumline.policy.call import choose, make_job
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio

WEIGHTS = {"a": 4, "b": 2, "c": 1}


class Crowd:
    """Tasks that count by queue how many began, how many run, and the most that ran at once."""

    def __init__(self, kit):
        self.kit = kit
        self.begun: Counter[str] = Counter()
        self.inside: Counter[str] = Counter()
        self.highest: Counter[str] = Counter()
        self.gate = threading.Event()
        self._lock = threading.Lock()
        kit.task(self.wait)
        kit.task(self.block)
        kit.task(self.short)
        kit.task(self.short_in_thread)

    def enter(self, queue):
        with self._lock:
            self.begun[queue] += 1
            self.inside[queue] += 1
            self.highest[queue] = max(self.highest[queue], self.inside[queue])
            self.highest["all"] = max(self.highest["all"], self.inside.total())

    def leave(self, queue):
        with self._lock:
            self.inside[queue] -= 1

    async def wait(self, ctx: Context) -> None:
        self.enter(ctx.queue)
        while not self.gate.is_set():
            await asyncio.sleep(0.001)
        self.leave(ctx.queue)

    def block(self, ctx: Context) -> None:
        self.enter(ctx.queue)
        self.gate.wait(10)
        self.leave(ctx.queue)

    async def short(self, ctx: Context) -> None:
        self.enter(ctx.queue)
        await asyncio.sleep(0)
        self.leave(ctx.queue)

    def short_in_thread(self, ctx: Context) -> None:
        self.enter(ctx.queue)
        self.leave(ctx.queue)

    def add(self, number=1, *, task="wait", **using):
        definition = self.kit.registry[task]
        jobs = [make_job(definition, (), {}, choose(definition, **using), fresh_id=fresh_id()) for _ in range(number)]
        return [enqueued.id for enqueued in self.kit.memory.enqueue(jobs).run()]

    def is_inside(self, **numbers):
        return all(self.inside[queue] == number for queue, number in numbers.items())


@pytest.fixture
def crowd(kit):
    made = Crowd(kit)
    yield made
    made.gate.set()


def rules(**given):
    return QueueRules(**given)


def count_first(crowd, most):
    """Counts the first so many that begin, by queue."""
    enter = crowd.enter
    begun: Counter[str] = Counter()

    def count(queue):
        if begun.total() < most:
            begun[queue] += 1
        enter(queue)

    crowd.enter = count
    return begun


async def test_under_load_weighted_queues_are_served_within_a_tenth_of_their_weights(kit, crowd):
    # More than each will need, so that none runs dry before ten thousand have begun.
    for queue, weight in WEIGHTS.items():
        crowd.add(1_600 * weight, task="short", queue=queue)
    begun = count_first(crowd, 10_000)
    async with kit.working(queues=tuple(WEIGHTS), concurrency=50, rules=rules(weights=WEIGHTS)):
        await eventually(lambda: begun.total() == 10_000, deadline=60)
    for queue, weight in WEIGHTS.items():
        assert begun[queue] == pytest.approx(10_000 * weight / 7, rel=0.1)


async def test_strict_queues_are_emptied_in_their_order(kit, crowd):
    order: list[str] = []
    crowd.enter = order.append
    crowd.leave = lambda _: None
    for queue in ("c", "a", "b"):
        crowd.add(20, task="short", queue=queue)
    async with kit.working(queues=("b", "c", "a"), concurrency=5, rules=rules(caps={"a": 50})):
        await eventually(lambda: len(order) == 60)
    assert order == ["b"] * 20 + ["c"] * 20 + ["a"] * 20


@pytest.mark.parametrize("task", ["wait", "block"])
@pytest.mark.parametrize("queues", [("mail", "other"), ()])
async def test_no_more_of_a_queue_run_than_its_cap_and_the_others_have_the_rest(kit, crowd, task, queues):
    crowd.add(20, task=task, queue="mail", priority=9)
    crowd.add(20, task=task, queue="other")
    async with kit.working(queues=queues, concurrency=8, rules=rules(caps={"mail": 3})):
        await eventually(lambda: crowd.is_inside(mail=3, other=5))
        crowd.gate.set()
        await eventually(lambda: crowd.begun.total() == 40)
    assert crowd.highest["mail"] <= 3
    assert crowd.highest["all"] == 8


async def test_a_cap_holds_for_coroutines_and_threads_together(kit, crowd):
    for task in ("wait", "block"):
        crowd.add(5, task=task, queue="mail")
    async with kit.working(concurrency=8, rules=rules(caps={"mail": 2})):
        await eventually(lambda: crowd.inside["mail"] == 2)
        crowd.gate.set()
        await eventually(lambda: crowd.begun["mail"] == 10)
    assert crowd.highest["mail"] == 2


@pytest.mark.parametrize("queues", [("mail", "other"), ()])
async def test_a_cap_holds_in_a_flood_of_short_jobs_that_are_claimed_ahead(kit, crowd, queues):
    crowd.add(600, task="short", queue="mail")
    crowd.add(600, task="short_in_thread", queue="mail")
    crowd.add(600, task="short", queue="other")
    async with kit.working(queues=queues, concurrency=20, rules=rules(caps={"mail": 2}, reserved={"other": 3})):
        await eventually(lambda: crowd.begun.total() == 1_800, deadline=60)
    assert crowd.highest["mail"] <= 2


async def test_every_queue_as_one_keeps_its_order_of_priority_below_a_cap(kit, crowd):
    order: list[str] = []
    crowd.enter = order.append
    crowd.leave = lambda _: None
    for priority, queue in enumerate(["mail", "x", "mail", "y"]):
        crowd.add(task="short", queue=queue, priority=priority)
    async with kit.working(concurrency=1, rules=rules(caps={"mail": 5})):
        await eventually(lambda: len(order) == 4)
    assert order == ["y", "mail", "x", "mail"]


async def test_several_caps_of_a_worker_of_every_queue_leave_no_slot_idle(kit, crowd):
    crowd.add(9, queue="a")
    crowd.add(9, queue="b")
    crowd.add(4, queue="c")
    async with kit.working(concurrency=9, rules=rules(caps={"a": 2, "b": 3})):
        await eventually(lambda: crowd.is_inside(a=2, b=3, c=4))


@pytest.mark.parametrize("task", ["wait", "block"])
@pytest.mark.parametrize("queues", [("flood", "critical"), ()])
async def test_under_a_flood_a_reserved_slot_starts_a_critical_job_at_once(kit, crowd, task, queues):
    crowd.add(50, task=task, queue="flood", priority=9)
    async with kit.working(queues=queues, concurrency=6, threads=6, rules=rules(reserved={"critical": 2})):
        await eventually(lambda: crowd.inside["flood"] == 4)
        crowd.add(3, task=task, queue="critical", priority=-9)
        await eventually(lambda: crowd.inside["critical"] == 2)
        # The third waits for a common slot like anybody else, and the flood has not got more than those.
        assert crowd.is_inside(flood=4, critical=2)
        crowd.gate.set()
        await eventually(lambda: crowd.begun.total() == 53)
    assert crowd.highest["flood"] <= 4


async def test_threads_are_kept_for_a_critical_job_too(kit, crowd):
    crowd.add(50, task="block", queue="flood")
    async with kit.working(concurrency=100, threads=3, rules=rules(reserved={"critical": 1})):
        await eventually(lambda: crowd.inside["flood"] == 2)
        crowd.add(task="block", queue="critical")
        await eventually(lambda: crowd.inside["critical"] == 1)
        assert crowd.inside["flood"] == 2
        crowd.gate.set()


async def test_reserved_slots_stay_free_in_a_flood_of_short_jobs_that_are_claimed_ahead(kit, crowd):
    crowd.add(2_000, task="short", queue="flood")
    crowd.add(300, task="short", queue="critical")
    async with kit.working(queues=("flood", "critical"), concurrency=10, rules=rules(reserved={"critical": 4})):
        await eventually(lambda: crowd.begun.total() == 2_300, deadline=60)
    assert crowd.highest["flood"] <= 6
    assert crowd.highest["all"] <= 10


async def test_a_queue_with_reserved_slots_may_take_common_ones_too(kit, crowd):
    crowd.add(10, queue="critical")
    async with kit.working(concurrency=6, rules=rules(reserved={"critical": 2, "other": 1})):
        await eventually(lambda: crowd.inside["critical"] == 5)
        crowd.add(queue="other")
        await eventually(lambda: crowd.inside["other"] == 1)


async def test_two_queues_do_not_take_each_other_s_slots(kit, crowd):
    crowd.add(10, queue="a")
    crowd.add(10, queue="x")
    async with kit.working(concurrency=5, rules=rules(reserved={"a": 1, "b": 2})):
        await eventually(lambda: crowd.inside["a"] + crowd.inside["x"] == 3)
        crowd.add(10, queue="b")
        await eventually(lambda: crowd.inside["b"] == 2)
        assert crowd.inside["a"] + crowd.inside["x"] == 3


async def test_a_cap_that_is_changed_holds_at_once(kit, crowd):
    crowd.add(30, queue="mail")
    async with kit.working(concurrency=10) as worker:
        await eventually(lambda: crowd.inside["mail"] == 10)
        worker.resize(caps={"mail": 2}, concurrency=20)
        crowd.add(10, queue="other")
        await eventually(lambda: crowd.inside["other"] == 10)
        assert crowd.inside["mail"] == 10
        worker.resize(caps={"mail": 12}, concurrency=30)
        await eventually(lambda: crowd.inside["mail"] == 12)
        worker.resize(caps={"mail": None})
        await eventually(lambda: crowd.inside["mail"] == 20)


async def test_after_a_lowered_cap_what_runs_goes_on_and_nothing_more_starts_until_there_is_room(kit, crowd):
    crowd.add(20, queue="mail")
    async with kit.working(concurrency=5, rules=rules(caps={"mail": 4})) as worker:
        await eventually(lambda: crowd.inside["mail"] == 4)
        worker.resize(caps={"mail": 1})
        # From another thread's sight it holds when the fleet hears of it.
        await eventually(lambda: worker.rules.caps == {"mail": 1})
        crowd.highest.clear()
        crowd.gate.set()
        await eventually(lambda: crowd.begun["mail"] == 20)
    assert crowd.highest["mail"] == 1


async def test_what_was_claimed_while_a_cap_was_lowered_never_runs_beyond_it(kit, crowd):
    ids = crowd.add(3, queue="mail")
    hold = kit.wire.hold_reply("claim")
    async with kit.working(concurrency=3, rules=rules(caps={"mail": 3})) as worker:
        await eventually(lambda: hold.waiting)
        worker.resize(caps={"mail": 1})
        await eventually(lambda: worker.rules.caps == {"mail": 1})
        hold.let_go()
        await eventually(lambda: Counter(map(kit.state, ids)) == {"running": 1, "ready": 2})
        crowd.gate.set()
        await eventually(lambda: crowd.begun["mail"] == 3)
    assert crowd.highest["mail"] == 1


async def test_slots_can_be_reserved_and_let_go_while_it_works(kit, crowd):
    crowd.add(30, queue="flood")
    async with kit.working(concurrency=4) as worker:
        await eventually(lambda: crowd.inside["flood"] == 4)
        worker.resize(reserved={"critical": 1}, concurrency=6)
        await eventually(lambda: crowd.inside["flood"] == 5)
        crowd.add(queue="critical")
        await eventually(lambda: crowd.inside["critical"] == 1)
        worker.resize(reserved={"critical": None}, concurrency=8)
        await eventually(lambda: crowd.inside["flood"] == 7)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"caps": {"mail": 0}}, "caps: mail must be a whole number of 1 or more, got 0"),
        ({"reserved": {"mail": 4}}, "reserved slots of queues must be at most 3 in all, where concurrency is 4"),
        ({"concurrency": 2, "reserved": {"mail": 2}}, "reserved slots of queues must be at most 1 in all"),
        ({"caps": {"mail": 1}, "reserved": {"mail": 2}}, "reserved slots of queue mail must be at most its cap of 1"),
    ],
)
async def test_a_change_that_cannot_be_kept_to_is_refused_where_it_is_made(kit, change, says):
    with pytest.raises(BadOption) as caught:
        kit.worker(concurrency=4).resize(**change)
    assert str(caught.value).startswith(says)


async def test_a_concurrency_below_the_reserved_slots_is_refused(kit):
    with pytest.raises(BadOption, match="reserved slots of queues must be at most 1 in all"):
        kit.worker(concurrency=4, rules=rules(reserved={"a": 2})).resize(concurrency=2)


async def test_a_paused_queue_gives_its_weight_to_the_others(kit, crowd):
    for queue in WEIGHTS:
        crowd.add(1_500, task="short", queue=queue)
    kit.memory.pause(PauseKind.QUEUE, ["a"], paused=True, by=By("test"), token=fresh_id()).run()
    begun = count_first(crowd, 2_000)
    async with kit.working(queues=tuple(WEIGHTS), concurrency=10, rules=rules(weights=WEIGHTS)):
        await eventually(lambda: begun.total() == 2_000, deadline=60)
    assert begun["a"] == 0
    assert begun["b"] / begun["c"] == pytest.approx(2, rel=0.1)


async def test_weights_without_a_list_serve_every_queue_the_rest_as_one(kit, crowd):
    for queue in ("a", "x", "y"):
        crowd.add(30, queue=queue)
    async with kit.working(concurrency=8, rules=rules(weights={"a": 3})):
        await eventually(lambda: crowd.inside.total() == 8)
    assert crowd.begun["a"] == 6


async def test_a_task_past_its_time_limit_holds_its_place_under_the_cap_until_it_ends(kit, crowd):
    begun, told = [], threading.Event()

    def deaf(ctx: Context) -> None:
        begun.append(ctx.job_id)
        if len(begun) == 1:
            told.wait(10)

    kit.task(deaf, timeout="1s", max_attempts=1)
    crowd.add(2, task="deaf", queue="mail")
    async with kit.working(concurrency=4, rules=rules(caps={"mail": 1})) as worker:
        await eventually(lambda: len(begun) == 1)
        await kit.pass_time(lambda: worker.runner.stuck == 1, by=5)
        assert len(begun) == 1
        told.set()
        await eventually(lambda: len(begun) == 2)


async def test_rules_that_change_under_load_hang_nothing_and_are_never_exceeded(kit, crowd):
    names = ("a", "b", "c", "d")
    for queue in names:
        crowd.add(400, task="short", queue=queue)
        crowd.add(200, task="short_in_thread", queue=queue)
    dice = random.Random(11)

    def has_begun(aim):
        return crowd.begun.total() >= aim

    def has_caps(caps):
        return worker.rules.caps == caps

    def is_within(queue, cap):
        return crowd.inside[queue] <= cap

    async with kit.working(concurrency=12, threads=6) as worker:
        while crowd.begun.total() < 2_400:
            queue, cap = dice.choice(names), dice.randint(1, 5)
            none = dict.fromkeys(names)
            worker.resize(caps={**none, queue: cap}, reserved={**none, queue: dice.choice([None, cap])})
            await eventually(partial(has_caps, {queue: cap}))
            await eventually(partial(is_within, queue, cap))
            crowd.highest.clear()
            await eventually(partial(has_begun, min(crowd.begun.total() + dice.randrange(1, 60), 2_400)))
            assert crowd.highest[queue] <= cap
        assert crowd.begun == dict.fromkeys(names, 600)


async def test_a_worker_without_rules_counts_nothing_by_queue(kit, crowd):
    crowd.add(3, task="short", queue="mail")
    worker = kit.worker()
    worker.runner.busy = lambda: pytest.fail("what runs was counted")
    run = asyncio.create_task(worker.run())
    await eventually(lambda: crowd.begun["mail"] == 3)
    worker.stop()
    await run
    assert {tuple(call[1]) for call in kit.wire.asked("claim")}
    assert all(share.queue == ANY_QUEUE for call in kit.wire.asked("claim") for share in call[1])
