import pytest

from drumline.errors import BadOption
from drumline.model.queues import QueueRules, read_queues

RULES = QueueRules(weights={"a": 2, "b": 1}, caps={"a": 5}, reserved={"b": 2})


@pytest.mark.parametrize(
    ("given", "names", "weights"),
    [
        ((), (), {}),
        (("b", "a"), ("b", "a"), {}),
        (["b=4", "a = 2"], ("b", "a"), {"b": 4, "a": 2}),
        ({"b": 4, "a": 2}, ("b", "a"), {"b": 4, "a": 2}),
    ],
)
def test_queues_are_named_in_their_order_with_or_without_weights(given, names, weights):
    assert read_queues(given, "queues") == (names, weights)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("mail", "queues must be a list of queue names, or a table of their weights, got 'mail'"),
        (7, "queues must be a list of queue names, or a table of their weights, got 7"),
        ([7], "queues must be 1 to 100 letters"),
        (["a b"], "queues must be 1 to 100 letters"),
        (["*=1"], "queues must be 1 to 100 letters"),
        (["a", "a"], "queues must be a list that names each queue once, got ['a', 'a']"),
        (["a=4", "b"], "queues must be given with a weight for each queue or for none (b without), got {'a': 4}"),
        (["a=4", "b=0"], "queues: the weight of b must be a whole number of 1 or more, got 0"),
        (["a=4", "b=many"], "queues: the weight of b must be a whole number of 1 or more, got 'many'"),
        (["a=4", "b="], "queues: the weight of b must be a whole number of 1 or more, got ''"),
        ({"a": 1.5}, "queues: the weight of a must be a whole number of 1 or more, got 1.5"),
        ({"a": -1}, "queues: the weight of a must be a whole number of 1 or more, got -1"),
    ],
)
def test_a_list_of_queues_that_cannot_be_is_refused(given, says):
    with pytest.raises(BadOption) as caught:
        read_queues(given, "queues")
    assert str(caught.value).startswith(says)


def test_of_a_worker_s_queues_only_their_own_rules_count():
    assert RULES.of(("b", "c")) == QueueRules(weights={"b": 1}, reserved={"b": 2})
    assert RULES.of(()) == RULES
    assert RULES.queues == ["a", "b"]


def test_no_rules_are_false():
    assert not QueueRules()
    assert QueueRules(caps={"a": 1})
    assert QueueRules(weights={"a": 1})
    assert QueueRules(reserved={"a": 1})


def test_numbers_of_single_queues_are_changed_and_taken_away():
    changed = RULES.change(caps={"a": None, "b": 3}, reserved={"c": 1})
    assert (changed.caps, changed.reserved, changed.weights) == ({"b": 3}, {"b": 2, "c": 1}, RULES.weights)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"caps": {"a": 0}}, "caps: a must be a whole number of 1 or more, got 0"),
        ({"reserved": {"a": "2"}}, "reserved: a must be a whole number of 1 or more, got '2'"),
        ({"caps": {"a b": 1}}, "caps must be 1 to 100 letters"),
    ],
)
def test_a_change_to_a_number_that_cannot_be_is_refused(change, says):
    with pytest.raises(BadOption) as caught:
        RULES.change(**{"caps": {}, "reserved": {}, **change})
    assert str(caught.value).startswith(says)


def test_as_many_slots_can_be_reserved_as_leave_one_for_the_other_queues():
    rules = QueueRules(reserved={"a": 2, "b": 1})
    assert rules.check((), 4) is rules
    assert rules.check(("a", "b", "c"), 4) is rules
    # Every queue has its own: nobody else is there to want one.
    assert rules.check(("a", "b"), 3) is rules
    assert QueueRules(caps={"a": 1}).check((), 1)


@pytest.mark.parametrize(
    ("rules", "queues", "concurrency", "says"),
    [
        (
            QueueRules(reserved={"a": 2, "b": 1}),
            (),
            3,
            "reserved slots of queues must be at most 2 in all, where concurrency is 3, so that other queues have one",
        ),
        (
            QueueRules(reserved={"a": 4}),
            ("a",),
            3,
            "reserved slots of queues must be at most 3 in all, where concurrency is 3 (a 4), got 4",
        ),
        (
            QueueRules(reserved={"a": 4}, caps={"a": 3}),
            (),
            100,
            "reserved slots of queue a must be at most its cap of 3, got 4",
        ),
    ],
)
def test_slots_that_there_are_not_cannot_be_reserved(rules, queues, concurrency, says):
    with pytest.raises(BadOption) as caught:
        rules.check(queues, concurrency)
    assert str(caught.value).startswith(says)
