from drumline.engine.slots import Limits, Slots
from drumline.policy.options import Executor

COROUTINE, THREAD, PROCESS = Executor


def rooms(slots):
    return [slots.room(executor) for executor in Executor]


def test_each_executor_has_its_own_limit_and_all_share_one():
    slots = Slots(Limits(concurrency=5, threads=3, children=2))
    assert rooms(slots) == [5, 3, 2]
    slots.take(THREAD)
    slots.take(PROCESS)
    assert rooms(slots) == [3, 2, 1]
    slots.take(COROUTINE)
    slots.take(COROUTINE)
    assert rooms(slots) == [1, 1, 1]
    slots.free(PROCESS)
    assert rooms(slots) == [2, 2, 2]


def test_without_children_their_tasks_share_the_threads():
    slots = Slots(Limits(concurrency=9, threads=3))
    slots.take(THREAD)
    slots.take(PROCESS)
    assert rooms(slots) == [7, 1, 1]


def test_below_what_runs_there_is_less_than_no_room_until_enough_has_ended():
    slots = Slots(Limits(concurrency=9, threads=9, children=9))
    for _ in range(3):
        slots.take(THREAD)
    slots.limits = Limits(concurrency=2, threads=1, children=9)
    assert rooms(slots) == [-1, -2, -1]
    slots.free(THREAD)
    slots.free(THREAD)
    assert rooms(slots) == [1, 0, 1]
