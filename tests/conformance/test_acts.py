"""What somebody asked for stands in the audit: enqueue, declare, withdraw and fire, when they are an act."""

import pytest

from drumline.errors import KeyTaken
from drumline.model.act import Act
from drumline.model.query import Answer, By
from tests.support.build import new_job, new_schedule, trigger, unique
from tests.support.promises import promises

BOB = By("bob", "http", "because")


def act(action: str, act_id: str = "a1") -> Act:
    return Act(id=act_id, by=BOB, action=action)


def told(rig):
    return [(row.id, row.by, row.action, row.targets, row.answers) for row in rig.audit()]


@promises(
    "enqueue",
    "With an act, which is somebody's who asked for these jobs, its audit row is written in the same step, once.",
)
@pytest.mark.parametrize("is_keyed", [True, False])
def test_an_enqueue_that_is_an_act_leaves_an_audit_row(rig, is_keyed):
    rig.advance(7)
    job = new_job(key=unique("once") if is_keyed else None)
    (made,) = rig.store.enqueue([job], act=act("enqueue")).run()
    assert made.created
    assert told(rig) == [("a1", BOB, "enqueue", (job.id,), (Answer.APPLIED,))]
    assert rig.audit()[0].at == rig.now()
    assert rig.state(job.id) == "ready"


def test_a_repeated_act_leaves_one_row_with_what_it_came_to_first(rig):
    job = new_job()
    for _ in range(2):
        rig.store.enqueue([job], act=act("enqueue")).run()
    assert told(rig) == [("a1", BOB, "enqueue", (job.id,), (Answer.APPLIED,))]
    assert rig.count().ready == 1


def test_the_row_says_of_each_job_whether_it_was_made(rig):
    standing, new, late = rig.add(), new_job(), new_job(delay=3600)
    rig.store.enqueue([new_job(id=standing), new, late], act=act("enqueue")).run()
    ((_, _, _, targets, answers),) = told(rig)
    assert targets == (standing, new.id, late.id)
    assert answers == (Answer.REFUSED, Answer.APPLIED, Answer.APPLIED)


def test_an_enqueue_that_raises_leaves_no_row(rig):
    rig.add(key=unique("once"))
    with pytest.raises(KeyTaken):
        rig.store.enqueue([new_job(key=unique("once", on_conflict="raise"))], act=act("enqueue")).run()
    assert rig.audit() == []


def test_an_enqueue_that_is_nobodys_act_leaves_no_row(rig):
    rig.add()
    assert rig.audit() == []


@promises("declare", "With an act, its audit row is written in the same step, once.")
def test_a_declaration_that_is_an_act_leaves_an_audit_row(rig):
    schedules = [new_schedule("a", in_code=False), new_schedule("b", in_code=False)]
    rig.declare(schedules[0])
    for _ in range(2):
        rig.store.declare(schedules, by=BOB, act=act("register")).run()
    assert told(rig) == [("a1", BOB, "register", ("a", "b"), (Answer.REFUSED, Answer.APPLIED))]


@promises("withdraw", "With an act, its audit row is written in the same step, once.")
def test_a_withdrawal_that_is_an_act_leaves_an_audit_row(rig):
    rig.declare(new_schedule("a", in_code=False))
    for _ in range(2):
        rig.store.withdraw(["a", "nobody"], by=BOB, act=act("unregister")).run()
    assert told(rig) == [("a1", BOB, "unregister", ("a", "nobody"), (Answer.APPLIED, Answer.REFUSED))]


@promises("fire", "With an act, its audit row is written in the same step, once.")
def test_firings_that_are_an_act_leave_an_audit_row_of_their_schedules(rig):
    rig.declare(new_schedule("a", overlap="skip"), new_schedule("b", overlap="skip"))
    rig.fire(trigger(rig.now(), "b"))
    firings = [trigger(rig.now(), name) for name in ("b", "a", "a")]
    rig.store.fire(firings, by="bob", act=act("trigger")).run()
    assert told(rig) == [("a1", BOB, "trigger", ("b", "a"), (Answer.REFUSED, Answer.APPLIED))]
    rig.store.fire(firings, by="bob", act=act("trigger")).run()
    assert len(rig.audit()) == 1


def test_a_slice_of_an_act_names_the_whole(rig):
    part = Act(id="a2", by=BOB, action="backfill", part_of="a1")
    rig.store.enqueue([new_job()], act=part).run()
    assert [row.part_of for row in rig.audit()] == ["a1"]
