from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from drumline.model.schedule import Coordination, Decision
from drumline.policy.held import is_instant
from drumline.policy.verify import Finding, Findings, Kind, Made, verify
from tests.policy.ledger import OWN, SEVEN, Play, after, changed, fired, orphaned, paused, row, status

DEEDS = ("leave", "come_back", "pause", "resume", "change", "orphan", "adopt")


def judge(rows, now=100, made=(), held=None, **given):
    return verify("tick", rows, made, held, now=after(now), **given)


def tell(findings: Findings, kind: Kind) -> list[tuple[float, float, int | None]]:
    def second(instant):
        return (instant - after(0)).total_seconds()

    return [(second(f.first), second(f.last), f.count) for f in findings.found if f.kind is kind]


def test_a_whole_ledger_has_nothing_to_find():
    findings = judge([changed(0), *fired(10, 20, 30)], now=35, held=status(30))
    assert findings == Findings(schedule="tick", expected=3, found=())
    assert findings.is_sound


def test_an_instant_without_a_row_is_missing():
    findings = judge([changed(0), *fired(10, 30)], now=35, held=status(30))
    assert tell(findings, Kind.MISSING) == [(20, 20, 1)]
    assert findings.count(Kind.MISSING) == 1
    assert not findings.is_sound


def test_instants_that_follow_each_other_are_told_together():
    findings = judge([changed(0), *fired(40)], now=75, held=status(70))
    assert tell(findings, Kind.MISSING) == [(10, 30, 3), (50, 70, 3)]


def test_a_row_without_a_job_is_a_decision_too():
    rows = [changed(0), row(10, Decision.MISSED), row(20, Decision.OVERLAP)]
    assert judge(rows, now=25, held=status(20)).found == ()


def test_a_row_for_many_instants_covers_all_of_them():
    rows = [changed(0), row(10, Decision.MISSED, until=after(50_000), count=5000), *fired(50_020)]
    findings = judge(rows, now=50_021, held=status(50_020))
    assert findings.expected == 5002
    assert tell(findings, Kind.MISSING) == [(50_010, 50_010, 1)]


def test_a_start_of_the_fleet_is_no_instant_of_the_rule():
    start = row(10, mark="start:3", job_id="start")
    findings = judge([changed(0), start], now=15, held=status(10), made=[Made("start", "default", after(10))])
    assert [finding.kind for finding in findings.found] == [Kind.MISSING]


def test_what_is_due_and_not_decided_is_not_missing():
    findings = judge([changed(0), *fired(10)], now=36, held=status(10))
    assert tell(findings, Kind.UNDECIDED) == [(20, 30, 2)]
    assert findings.is_sound


def test_what_is_on_time_is_not_even_undecided():
    assert judge([changed(0), *fired(10)], now=24.9, held=status(10)).found == ()


def test_each_rule_is_asked_for_its_own_time():
    rows = [changed(0), *fired(10, 20), changed(22, SEVEN, 2), *fired(28, 42)]
    findings = judge(rows, now=43, held=status(42, rule=SEVEN))
    assert tell(findings, Kind.MISSING) == [(35, 35, 1)]
    assert findings.expected == 5


def test_changes_of_one_instant_count_in_the_order_of_their_versions():
    rows = [changed(0, SEVEN, 10), changed(0, version=9), *fired(7, 14)]
    assert judge(rows, now=15, held=status(14, rule=SEVEN)).found == ()


def test_nothing_is_asked_for_while_paused():
    rows = [changed(0), *fired(10), paused(15, 45), *fired(50)]
    assert judge(rows, now=51, held=status(50)).found == ()


def test_a_pause_that_ends_at_once_passes_over_what_was_due():
    rows = [changed(0), *fired(10), paused(20, 20), *fired(30)]
    findings = judge(rows, now=31, held=status(30))
    assert tell(findings, Kind.PASSED_OVER) == [(20, 20, 1)]
    assert findings.is_sound


def test_nothing_is_asked_for_in_a_pause_that_lasts():
    assert judge([changed(0), *fired(10)], held=status(10, paused_at=after(12))).found == ()


def test_nothing_is_asked_for_between_an_orphaning_and_the_next_change():
    rows = [changed(0), *fired(10), orphaned(10), changed(55, version=2), *fired(60)]
    assert judge(rows, now=61, held=status(60)).found == ()


def test_nothing_is_asked_for_since_an_orphaning_that_lasts():
    assert judge([changed(0), *fired(10), orphaned(10)], held=status(10)).found == ()


def test_nothing_is_asked_for_once_withdrawn():
    assert judge([changed(0), *fired(10), changed(15, None, 2)]).found == ()


def test_what_was_due_when_the_rule_ceased_to_hold_is_passed_over():
    rows = [changed(0), *fired(10), changed(35, SEVEN, 2), *fired(42)]
    findings = judge(rows, now=43, held=status(42, rule=SEVEN))
    assert tell(findings, Kind.PASSED_OVER) == [(20, 30, 2)]
    assert findings.is_sound


def test_a_backfill_into_what_was_passed_over_makes_nothing_missing():
    asked = row(30, reason="backfilled", recorded_at=after(90), job_id="job-30")
    rows = [changed(0), *fired(10), asked, changed(45, SEVEN, 2), *fired(49)]
    findings = judge(rows, now=50, held=status(49, rule=SEVEN))
    assert tell(findings, Kind.PASSED_OVER) == [(20, 20, 1), (40, 40, 1)]
    assert findings.is_sound


def test_a_backfill_is_never_late():
    asked = row(10, reason="backfilled", recorded_at=after(90), job_id="job-10")
    assert judge([changed(0), asked], now=15, held=status(10)).found == ()


def test_a_tick_fired_more_than_the_grace_after_its_instant_is_late():
    rows = [
        changed(0),
        row(10, recorded_at=after(15), job_id="in-time"),
        row(20, recorded_at=after(25.001), job_id="late"),
        row(30, Decision.MISSED, recorded_at=after(99)),
        row(40, recorded_at=after(46)),
    ]
    findings = judge(rows, now=45, held=status(40))
    assert [(finding.kind, finding.jobs) for finding in findings.found] == [(Kind.LATE, ("late",)), (Kind.LATE, ())]
    assert findings.is_sound
    assert judge(rows, now=45, held=status(40, misfire_grace=timedelta(seconds=30))).found == ()


def test_two_jobs_of_one_tick_are_a_duplicate():
    made = [Made("job-10", "default", after(10)), Made("other", "default", after(10))]
    findings = judge([changed(0), *fired(10)], now=15, held=status(10), made=made)
    assert findings.found == (Finding(kind=Kind.DUPLICATE, first=after(10), last=after(10), jobs=("job-10", "other")),)
    assert not findings.is_sound


def test_a_job_that_the_ledger_does_not_name_is_a_duplicate():
    rows = [changed(0), row(10, Decision.MISSED)]
    findings = judge(rows, now=15, held=status(10), made=[Made("job-10", "default", after(10))])
    assert findings.count(Kind.DUPLICATE) == 1


def test_replicas_have_each_their_own_job():
    rows = [changed(0), *fired(10, replica="a:1"), *fired(10, replica="b:2")]
    made = [Made("job-a:110", "@a:1", after(10)), Made("job-b:210", "@b:2", after(10))]
    assert judge(rows, now=15, held=status(10, coordination=OWN), made=made).found == ()


def test_a_replica_is_judged_between_its_first_row_and_its_last():
    rows = [changed(0), *fired(20, 40, replica="a:1"), *fired(30, 40, replica="b:2")]
    findings = judge(rows, held=status(40, coordination=OWN))
    assert [(finding.kind, finding.replica, finding.first) for finding in findings.found] == [
        (Kind.MISSING, "a:1", after(30))
    ]
    assert findings.expected == 5


def test_a_replica_that_has_gone_passes_nothing_over():
    rows = [changed(0), *fired(10, 20, replica="a:1"), changed(55, SEVEN, 2), *fired(56, replica="b:2")]
    assert judge(rows, now=57, held=status(56, rule=SEVEN, coordination=OWN)).found == ()


def test_without_a_status_the_rows_tell_whose_the_ticks_are():
    rows = [changed(0), *fired(20, 40, replica="a:1"), changed(45, None, 2)]
    assert tell(judge(rows), Kind.MISSING) == [(30, 30, 1)]


def test_a_schedule_that_was_per_replica_before_is_not_missing_the_fleets_rows():
    rows = [changed(0), *fired(10, 20, replica="a:1"), *fired(30, 40)]
    assert judge(rows, now=41, held=status(40)).found == ()
    rows = [changed(0), *fired(10, 40, replica="a:1"), *fired(20, 30)]
    assert judge(rows, now=41, held=status(40, coordination=Coordination.PER_REPLICA)).found == ()


def test_a_range_includes_its_ends_and_nothing_else():
    rows = [changed(0), row(60, job_id="late", recorded_at=after(90))]
    findings = judge(rows, now=61, held=status(60), start=after(20), end=after(40))
    assert [finding.kind for finding in findings.found] == [Kind.MISSING]
    assert tell(findings, Kind.MISSING) == [(20, 40, 3)]
    assert findings.expected == 3


def test_a_range_that_lies_ahead_asks_for_nothing():
    findings = judge([changed(0), *fired(10)], now=11, held=status(10), start=after(500), end=after(600))
    assert findings == Findings(schedule="tick", expected=0, found=())


def test_what_was_purged_is_unknown():
    findings = judge(fired(1000, 1010, 1030), now=1031, held=status(1030))
    assert tell(findings, Kind.UNKNOWN) == [(0, 999.999, None)]
    assert tell(findings, Kind.MISSING) == [(1020, 1020, 1)]


def test_a_range_in_what_was_purged_is_unknown():
    findings = judge(fired(1000, 1010), now=1011, held=status(1010), start=after(100), end=after(200))
    assert findings.found == (Finding(kind=Kind.UNKNOWN, first=after(100), last=after(200), count=None),)


def test_a_range_after_what_was_purged_is_known():
    findings = judge(fired(1000, 1010), now=1011, held=status(1010), start=after(1000))
    assert findings == Findings(schedule="tick", expected=2, found=())


def test_a_change_without_the_pause_before_it_is_known_from_the_next_tick_on():
    rows = [changed(500, version=7), *fired(600, 610)]
    findings = judge(rows, now=611, held=status(610))
    assert tell(findings, Kind.UNKNOWN) == [(0, 599.999, None)]
    assert findings.is_sound


def test_an_empty_ledger_tells_nothing():
    assert tell(judge([], held=status(90)), Kind.UNKNOWN) == [(0, 100, None)]
    assert judge([]).found == ()


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.integers(1, 300), st.sampled_from(DEEDS)), max_size=12))
def test_whatever_is_done_to_a_schedule_a_true_ledger_is_sound(deeds):
    play = Play()
    play.run(300, sorted(deeds))
    assert verify("tick", play.rows, (), play.status, now=after(300)).is_sound


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.integers(1, 300), st.sampled_from(DEEDS)), max_size=8), st.randoms(use_true_random=False))
def test_whatever_is_done_to_a_schedule_a_lost_row_is_found(deeds, random):
    play = Play()
    play.run(300, sorted(deeds))
    places = [row for row in play.rows if is_instant(row)]
    # A row is sure to be missed if the next one that the play wrote is an instant too.
    inner = [one for one, then in zip(play.rows, play.rows[1:], strict=False) if one in places and then in places]
    if inner:
        lost = random.choice(inner)
        rows = [row for row in play.rows if row is not lost]
        findings = verify("tick", rows, (), play.status, now=after(300))
        assert [(found.first, found.count) for found in findings.found if found.kind is Kind.MISSING] == [
            (lost.instant, 1)
        ]
