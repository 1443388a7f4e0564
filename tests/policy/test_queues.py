import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drumline.model.claim import ANY_QUEUE, Share
from drumline.policy.queues import account, common_slots, divide, interleave, own_slots, strict_shares, weighted_shares

WEIGHTS = {"a": 4, "b": 2, "c": 1}


def claim(shares, limit, waiting):
    """What a store would give: queue by queue, each at most its share. Takes it from what waits."""
    taken: list[str] = []
    for share in shares:
        for _ in range(min(share.limit, limit - len(taken))):
            open_queues = (
                [queue for queue in sorted(waiting) if queue not in share.but]
                if share.queue == ANY_QUEUE
                else [share.queue]
            )
            queue = next((queue for queue in open_queues if waiting[queue] > 0), None)
            if queue is None:
                break
            waiting[queue] -= 1
            taken.append(queue)
    return taken


class Service:
    """Weighted queues, served call by call."""

    def __init__(self, weights, waiting):
        self.weights = weights
        self.waiting = Counter(waiting)
        self.served: dict[str, float] = {}
        self.given: Counter[str] = Counter()

    def call(self, limit, room=None):
        room = room or {}
        parts = divide(self.weights, self.served, limit, room)
        taken = claim(weighted_shares(self.weights, self.served, parts, room), limit, self.waiting)
        self.served = account(self.weights, self.served, parts, room, taken)
        self.given.update(taken)
        return taken


def test_slots_that_are_neither_taken_nor_kept_are_common():
    assert common_slots(8, {}, {"a": 3}) == 5
    assert common_slots(8, {"c": 2}, {}) == 6
    assert common_slots(8, {"c": 2}, {"a": 6}) == 0
    assert common_slots(8, {"c": 2}, {"c": 1, "a": 3}) == 3
    # Beyond what is its own, it takes from the common ones.
    assert common_slots(8, {"c": 2}, {"c": 5}) == 3
    assert common_slots(2, {"c": 1}, {"a": 4}) == -3


def test_nothing_is_kept_where_it_would_leave_none_for_the_others():
    assert common_slots(2, {"c": 2}, {}) == 2


def test_of_its_own_slots_a_queue_has_those_that_it_has_not_taken():
    assert own_slots({"c": 2, "d": 1}, {"c": 1, "d": 4, "a": 9}) == {"c": 1, "d": 0}


def test_strict_queues_come_in_their_order_each_within_its_room():
    shares = strict_shares(["@me", "b", "a", "c"], 5, {"b": 2, "a": 9, "c": 0})
    assert shares == [Share("@me", 5), Share("b", 2), Share("a", 5)]


def test_every_queue_together_is_asked_in_slices_each_without_those_that_are_full():
    assert strict_shares([ANY_QUEUE], 10, {"a": 3, "b": 5, "c": 10}) == [
        Share(ANY_QUEUE, 3),
        Share(ANY_QUEUE, 2, ("a",)),
        Share(ANY_QUEUE, 5, ("a", "b")),
    ]
    assert strict_shares([ANY_QUEUE], 10, {"a": 0}) == [Share(ANY_QUEUE, 10, ("a",))]


rooms = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 12), max_size=4)


@given(limit=st.integers(0, 20), room=rooms, waiting=st.dictionaries(st.sampled_from("abcde"), st.integers(0, 20)))
def test_no_queue_ever_gives_more_than_it_has_room_for(limit, room, waiting):
    could = sum(min(number, room.get(queue, limit)) for queue, number in waiting.items())
    for queues in ([ANY_QUEUE], ["a", "b", "c", "d", "e"]):
        taken, left = Counter[str](), Counter(waiting)
        # Call after call, until one gives nothing.
        while more := claim(
            strict_shares(queues, limit - taken.total(), {queue: most - taken[queue] for queue, most in room.items()}),
            limit - taken.total(),
            left,
        ):
            taken.update(more)
            assert all(taken[queue] <= most for queue, most in room.items())
        assert taken.total() == min(limit, could)


@given(
    limits=st.lists(st.integers(1, 30), max_size=20),
    room=rooms,
    waiting=st.dictionaries(st.sampled_from("abcde"), st.integers(0, 60)),
)
def test_weighted_queues_give_all_that_there_is_room_for_and_no_more(limits, room, waiting):
    service = Service({"a": 5, "b": 1, "d": 2, ANY_QUEUE: 1}, waiting)
    for limit in limits:
        before = Counter(service.waiting)
        taken = Counter(service.call(limit, room))
        assert all(taken[queue] <= most for queue, most in room.items() if queue in service.weights)
        could = sum(
            min(number, room.get(queue, limit) if queue in service.weights else limit)
            for queue, number in before.items()
        )
        assert sum(taken.values()) == min(limit, could)


@pytest.mark.parametrize("most", [1, 3, 7, 200])
def test_under_load_queues_are_served_by_their_weights(most):
    dice = random.Random(most)
    service = Service(WEIGHTS, dict.fromkeys(WEIGHTS, 10_000))
    while service.given.total() < 10_000:
        service.call(dice.randint(1, most))
    for queue, weight in WEIGHTS.items():
        assert service.given[queue] == pytest.approx(service.given.total() * weight / 7, abs=3)


def test_jobs_of_one_call_start_side_by_side_by_their_weights():
    queues = ["a"] * 4 + ["b"] * 2 + ["c"] * 1
    order = interleave(WEIGHTS, {}, queues)
    assert [queues[place] for place in order] == ["a", "b", "a", "c", "a", "b", "a"]
    assert sorted(order) == list(range(7))


def test_jobs_of_one_queue_keep_their_order_and_those_without_weight_come_first():
    order = interleave({"a": 1}, {"a": 3.0}, ["a", "a", "@me", "x", "a"])
    assert order == [2, 3, 0, 1, 4]


def test_who_is_behind_starts_first():
    order = interleave({"a": 1, ANY_QUEUE: 1}, {"a": 2.0}, ["a", "a", "x", "y", "x"])
    assert order == [2, 3, 0, 4, 1]


def test_what_an_empty_queue_leaves_goes_to_the_others_by_their_weights():
    service = Service(WEIGHTS, {"a": 10_000, "b": 10_000})
    for _ in range(300):
        service.call(10)
    assert service.given["a"] / service.given["b"] == pytest.approx(2, rel=0.02)
    assert service.given.total() == 3_000


def test_a_queue_does_not_save_up_while_it_is_empty():
    service = Service(WEIGHTS, {"a": 10_000, "b": 10_000})
    for _ in range(100):
        service.call(10)
    service.waiting["c"] = 1_000
    assert Counter(service.call(70)) == pytest.approx({"a": 40, "b": 20, "c": 10}, abs=2)


def test_a_queue_does_not_save_up_while_it_is_at_its_cap():
    service = Service(WEIGHTS, dict.fromkeys(WEIGHTS, 10_000))
    for _ in range(100):
        assert "a" not in service.call(6, {"a": 0})
    assert service.given["b"] / service.given["c"] == pytest.approx(2, rel=0.02)
    assert Counter(service.call(70)) == pytest.approx({"a": 40, "b": 20, "c": 10}, abs=2)


def test_when_all_run_dry_they_begin_anew_together():
    service = Service(WEIGHTS, {"a": 30})
    service.call(100)
    assert len(set(service.served.values())) == 1


def test_queues_without_a_weight_of_their_own_have_one_in_common():
    service = Service({"a": 3, ANY_QUEUE: 1}, {"a": 9_000, "x": 900, "y": 900})
    for _ in range(100):
        service.call(10)
    assert service.given["a"] == pytest.approx(750, abs=2)
    assert service.given["x"] + service.given["y"] == pytest.approx(250, abs=2)


def test_jobs_of_queues_that_have_no_part_in_the_weights_count_for_none():
    assert account({"a": 1}, {"a": 2.0}, {"a": 0}, {}, ["z"]) == {"a": 2.0}
