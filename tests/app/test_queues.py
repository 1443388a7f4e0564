"""Queues as the program and its settings share them."""

from collections import Counter

import pytest

from drumline import BadOption, BadSettings, Context, Drumline
from drumline.config.worker import worker_options
from drumline.model.queues import QueueRules
from drumline.model.replica import Role

pytestmark = pytest.mark.asyncio

TOML = """
[jobs.queues.mail]
weight = 4
cap = 5

[jobs.queues.default]
weight = 1
reserved = 2

[jobs.queues."*"]
weight = 2
"""


def options(drum, queues=None, concurrency=None):
    return worker_options(drum.settings, "me", Role.COMBINED, queues, concurrency, drain=False)


async def test_weighted_queues_are_served_by_their_weights(any_drum):
    served = []

    @any_drum.task
    async def work(ctx: Context) -> None:
        served.append(ctx.queue)

    weights = {"a": 4, "b": 2, "c": 1}
    calls = [work.using(queue=queue).call() for queue, weight in weights.items() for _ in range(450 * weight)]
    await any_drum.enqueue_many(calls)
    await any_drum.run(queues=weights, concurrency=20, drain=True)
    assert len(served) == 3_150
    first = Counter(served[:2_800])
    assert first == pytest.approx({"a": 1_600, "b": 800, "c": 400}, rel=0.1)


@pytest.mark.parametrize("queues", [["a=4", "b=2"], {"a": 4, "b": 2}])
async def test_weights_are_given_as_texts_or_as_a_table(drum, queues):
    given = options(drum, queues)
    assert (given.queues, given.rules.weights) == (("a", "b"), {"a": 4, "b": 2})


@pytest.mark.parametrize(
    ("variable", "names", "weights"),
    [("b,a", ("b", "a"), {}), ("b=1, a=3", ("b", "a"), {"b": 1, "a": 3})],
)
async def test_the_settings_give_them_too(drum, monkeypatch, variable, names, weights):
    monkeypatch.setenv("DRUMLINE_WORKER__QUEUES", variable)
    given = options(drum)
    assert (given.queues, given.rules.weights) == (names, weights)


async def test_without_a_list_every_queue_is_served_by_the_weights_of_the_table(drum, folder):
    (folder / "drumline.toml").write_text(TOML)
    given = options(drum)
    weights = {"mail": 4, "default": 1, "*": 2}
    assert given.queues == ()
    assert given.rules == QueueRules(weights=weights, caps={"mail": 5}, reserved={"default": 2})


async def test_a_list_decides_by_itself_whether_it_is_strict_and_keeps_caps_and_reserved_slots(drum, folder):
    (folder / "drumline.toml").write_text(TOML)
    assert options(drum, ["other", "mail"]).rules == QueueRules(caps={"mail": 5})
    assert options(drum, ["default=3", "mail=1"]).rules == QueueRules(
        weights={"default": 3, "mail": 1}, caps={"mail": 5}, reserved={"default": 2}
    )


async def test_slots_reserved_for_queues_that_a_worker_does_not_serve_are_no_matter(drum, folder):
    (folder / "drumline.toml").write_text("[jobs.queues.critical]\nreserved = 50")
    assert options(drum, ["mail"], concurrency=2).rules == QueueRules()
    with pytest.raises(BadOption, match="reserved slots of queues must be at most 1 in all, where concurrency is 2"):
        options(drum, None, concurrency=2)


async def test_variables_name_single_queues_or_all_as_json(monkeypatch):
    monkeypatch.setenv("DRUMLINE_JOBS__QUEUES__MAIL__CAP", "3")
    monkeypatch.setenv("DRUMLINE_JOBS__QUEUES__MAIL__RESERVED", "2")
    assert Drumline("memory://").settings.jobs.queues == QueueRules(caps={"mail": 3}, reserved={"mail": 2})
    monkeypatch.undo()
    monkeypatch.setenv("DRUMLINE_JOBS__QUEUES", '{"Mail.out": {"weight": 3}}')
    assert Drumline("memory://").settings.jobs.queues == QueueRules(weights={"Mail.out": 3})


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[jobs.queues]\nmail = 4", "jobs.queues must be a table for each queue, such as {mail = {cap = 5}}, got"),
        ("[jobs]\nqueues = 4", "jobs.queues must be a table for each queue, such as {mail = {cap = 5}}, got 4"),
        ("[jobs.queues.mail]\ncap = 0", "jobs.queues.mail.cap must be a whole number of 1 or more, got 0"),
        ("[jobs.queues.mail]\nweight = 0", "jobs.queues.mail.weight must be a whole number of 1 or more, got 0"),
        ("[jobs.queues.mail]\nweight = 1.5", "jobs.queues.mail.weight must be a whole number of 1 or more, got 1.5"),
        ('[jobs.queues.mail]\ncap = "x"', "jobs.queues.mail.cap must be a whole number of 1 or more, got 'x'"),
        ("[jobs.queues.mail]\nreserved = -1", "jobs.queues.mail.reserved must be a whole number of 1 or more, got -1"),
        (
            "[jobs.queues.mail]\nwieght = 2",
            "jobs.queues.mail must be a table of weight, cap, reserved (did you mean weight?), got 'wieght'",
        ),
        ("[jobs.queues.mail]\nzzz = 2", "jobs.queues.mail must be a table of weight, cap, reserved, got 'zzz'"),
        ('[jobs.queues."*"]\ncap = 2', "jobs.queues.* must be a table of weight, got 'cap'"),
        ('[jobs.queues."a b"]\ncap = 2', "jobs.queues must be 1 to 100 letters"),
        (
            "[jobs.queues.mail]\nweight = 2\n[jobs.queues.slow]\ncap = 2",
            "jobs.queues must be given with a weight for each queue or for none (slow without), got",
        ),
        ('[worker]\nqueues = ["a=4", "b"]', "worker.queues must be given with a weight for each queue or for none"),
    ],
)
async def test_a_table_of_queues_that_cannot_be_is_refused_in_one_sentence(drum, folder, toml, says):
    (folder / "drumline.toml").write_text(toml)
    with pytest.raises(BadSettings) as caught:
        _ = drum.settings
    assert str(caught.value).startswith(f"drumline.toml: {says}")
