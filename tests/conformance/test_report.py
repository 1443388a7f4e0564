from datetime import timedelta

import pytest

from drumline.model.job import LogLine, Progress
from drumline.model.query import CommandKind
from tests.support.build import OTHER_REPLICA, dead, done, line, new_job, note, numbered_id, release, retry
from tests.support.promises import promises


@promises("report", "Keep progress, user error and log lines of claims that are still held")
def test_a_running_job_says_how_far_it_is(rig):
    claim = rig.start()
    said = LogLine(1, rig.later(0.25), "warning", "rows read ü 🥁", {"rows": 3, "deep": [1, {"x": None}]}, 1)
    assert rig.report(note(claim, said, progress=0.5, user_error="card refused")) == [True]
    job = rig.job(claim.id)
    assert (job.progress, job.user_error) == (Progress(0.5, "at 0.5"), "card refused")
    assert rig.logs(claim.id) == [said]


def test_a_note_changes_only_what_it_speaks_of(rig):
    claim = rig.start()
    rig.report(note(claim, progress=0.5, user_error="first"))
    assert rig.report(note(claim, line(claim, 1))) == [True]
    job = rig.job(claim.id)
    assert (job.progress, job.user_error) == (Progress(0.5, "at 0.5"), "first")
    rig.report(note(claim, progress=0.75), note(claim, progress=0.8))
    assert rig.job(claim.id).progress == Progress(0.8, "at 0.8")


@promises("report", "the rest answer False")
@pytest.mark.parametrize("ended", [done, dead, release, retry], ids=lambda ended: ended.__name__)
def test_a_note_of_a_claim_that_is_held_no_more_is_refused(rig, ended):
    rig.enqueue(new_job(), new_job())
    first, second = rig.take(2)
    rig.finish(ended(first))
    stranger = note(second, fence=second.fence + 1)
    assert rig.report(note(first, progress=0.1), note(second, progress=0.2), stranger) == [False, True, False]
    assert rig.job(second.id).progress == Progress(0.2, "at 0.2")


@promises("report", "A refused note leaves nothing.")
def test_a_refused_note_leaves_nothing(rig):
    stale = rig.start()
    rig.finish(release(stale))
    held = rig.take_one(replica=OTHER_REPLICA)
    before = rig.job(held.id)
    assert rig.report(note(stale, line(stale, 1), progress=0.9, user_error="late")) == [False]
    assert rig.job(held.id) == before
    assert rig.logs(held.id) == []


def test_a_note_of_a_job_that_is_not_stored_is_refused(rig):
    claim = rig.start()
    rig.finish(done(claim))
    rig.command(CommandKind.DISCARD, claim.id)
    assert rig.report(note(claim, line(claim, 1))) == [False]
    assert rig.logs(claim.id) == []
    assert rig.report() == []


def test_a_claim_whose_lease_has_passed_may_still_report(rig):
    claim = rig.start(lease=5)
    rig.advance(600)
    assert rig.report(note(claim, line(claim, 1), progress=0.5)) == [True]
    assert len(rig.logs(claim.id)) == 1


@promises("report", "A repeated line, by claim and number, is kept once.")
def test_a_repeated_line_is_kept_once(rig):
    claim = rig.start()
    rig.report(note(claim, line(claim, 1), line(claim, 2)))
    assert rig.report(note(claim, line(claim, 1), line(claim, 2), line(claim, 3))) == [True]
    rig.report(note(claim, line(claim, 4), line(claim, 4)), note(claim, line(claim, 4)))
    assert [found.number for found in rig.logs(claim.id)] == [1, 2, 3, 4]


def test_lines_of_two_claims_with_one_number_are_both_kept(rig):
    first = rig.start()
    rig.report(note(first, line(first, 1, "first")))
    rig.finish(release(first))
    second = rig.take_one()
    rig.report(note(second, line(second, 1, "second")))
    assert [found.message for found in rig.logs(first.id)] == ["first", "second"]


@promises("report", "Of a job's lines the first 1,000 are kept, then one that says that there were more.")
def test_of_a_jobs_lines_the_first_thousand_are_kept_and_one_that_says_so(rig):
    claim = rig.start()
    rig.report(note(claim, *(line(claim, number) for number in range(1, 991))))
    rig.report(note(claim, *(line(claim, number) for number in range(991, 1101))))
    rig.report(note(claim, *(line(claim, number) for number in range(1101, 1201))))
    kept = rig.logs(claim.id)
    assert [found.number for found in kept[:1000]] == list(range(1, 1001))
    assert len(kept) == 1001
    assert kept[1000].message != line(claim, 1001).message
    assert rig.store.logs(claim.id).run() == kept, "who asks for no number is told all, and that it was cut"


def test_exactly_a_thousand_lines_are_not_cut(rig):
    claim = rig.start()
    rig.report(note(claim, *(line(claim, number) for number in range(1, 1001))))
    assert [found.number for found in rig.logs(claim.id)] == list(range(1, 1001))


def test_the_lines_of_all_attempts_count_together(rig):
    first = rig.start()
    rig.report(note(first, *(line(first, number) for number in range(1, 901))))
    rig.finish(retry(first))
    second = rig.take_one()
    rig.report(note(second, *(line(second, number) for number in range(1, 901))))
    kept = rig.logs(first.id)
    assert (len(kept), kept[999].attempt, kept[999].number) == (1001, 2, 100)


def test_lines_stay_when_the_job_has_ended(rig):
    claim = rig.start()
    rig.report(note(claim, line(claim, 1)))
    rig.finish(done(claim))
    assert [found.number for found in rig.logs(claim.id)] == [1]


@promises("logs", "A job's log lines in the order they came")
def test_log_lines_are_told_in_the_order_they_came(rig):
    claim = rig.start()
    for number in (3, 1, 2):
        at = rig.later(-number)
        rig.report(note(claim, LogLine(number, at, "info", f"n{number}", {}, 1)))
        rig.advance(1)
    assert [found.message for found in rig.logs(claim.id)] == ["n3", "n1", "n2"]


@promises("logs", "behind the first `after`")
def test_log_lines_can_be_read_on_from_where_one_stopped(rig):
    claim = rig.start()
    rig.report(note(claim, *(line(claim, number) for number in range(1, 11))))
    assert [found.number for found in rig.logs(claim.id, after=4, limit=3)] == [5, 6, 7]
    assert rig.logs(claim.id, after=10) == []
    assert rig.logs(numbered_id(1)) == []


def test_logs_keep_the_instant_to_the_millisecond(rig):
    claim = rig.start()
    at = rig.now() + timedelta(milliseconds=7)
    rig.report(note(claim, LogLine(1, at, "info", "x")))
    assert rig.logs(claim.id)[0].at == at
