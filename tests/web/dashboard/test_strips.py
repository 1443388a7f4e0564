from datetime import UTC, datetime, timedelta

from drumline.model.schedule import Decision, Tick
from drumline.web.dashboard.strips import HEIGHT, draw_strip

AT = datetime(2026, 5, 5, 14, 0, tzinfo=UTC)


def tick(number: int, decision: Decision = Decision.FIRED, *, late: float = 0, count: int = 1, **facts: object) -> Tick:
    instant = AT + timedelta(minutes=number)
    job_id = f"job-{number}" if decision is Decision.FIRED else None
    return Tick(
        schedule="tidy",
        mark=str(number),
        replica="",
        instant=instant,
        decision=decision,
        reason="",
        by="web-1:abc",
        recorded_at=instant + timedelta(seconds=late),
        job_id=job_id,
        count=count,
        **facts,  # type: ignore[arg-type]
    )


def done(number: int, seconds: float, outcome: str = "done") -> Tick:
    return tick(number, outcome=outcome, run_time=timedelta(seconds=seconds))


def test_the_newest_stands_at_the_right_edge():
    strip = draw_strip([done(2, 1), done(1, 1)], 10)
    assert [stroke.job_id for stroke in strip.strokes] == ["job-1", "job-2"]
    assert strip.strokes[-1].x + 4 == strip.width


def test_height_is_run_time_and_colour_outcome():
    short, long = draw_strip([done(2, 10, "dead"), done(1, 1)], 10).strokes
    assert (long.height, long.y) == (HEIGHT, 0)
    assert short.height < long.height
    assert [short.kind, long.kind] == ["done", "dead"]


def test_a_job_that_has_not_ended_reads_as_running():
    assert draw_strip([tick(1)], 10).strokes[0].kind == "running"


def test_a_tick_without_a_job_is_a_gap_that_says_why():
    (stroke,) = draw_strip([tick(1, Decision.OVERLAP)], 10).strokes
    assert stroke.kind == "skipped"
    assert "the one before was unfinished" in stroke.title


def test_a_row_of_many_ticks_takes_the_room_of_a_few():
    assert len(draw_strip([tick(1, Decision.PAUSED, count=5000), done(0, 1)], 60).strokes) == 9


def test_rows_about_the_schedule_itself_are_no_ticks():
    assert draw_strip([tick(1, Decision.CHANGED)], 10).strokes == []


def test_no_more_strokes_than_places():
    assert len(draw_strip([done(number, 1) for number in range(99)], 60).strokes) == 60


def test_a_stroke_tells_who_fired_it_how_late_and_its_job():
    (stroke,) = draw_strip([tick(1, late=7, outcome="done", run_time=timedelta(seconds=2))], 10).strokes
    assert stroke.is_late
    assert stroke.title == "5 May 14:01:00 UTC · done · ran 2.0 s · fired by web-1, 7.0 s late · job job-1"


def test_a_strip_is_told_in_words_too():
    strip = draw_strip([done(3, 1), done(2, 1, "dead"), done(1, 1)], 10)
    assert strip.words == "last 3 ticks: 2 done and 1 dead"
    assert draw_strip([], 10).words == "no ticks yet"


def test_what_a_pause_has_passed_over_is_a_gap_at_the_right():
    strip = draw_strip([done(1, 1)], 60, [AT + timedelta(minutes=number) for number in range(2, 40)])
    assert [stroke.kind for stroke in strip.strokes] == ["done", *["skipped"] * 8]
    assert strip.strokes[-1].title == "5 May 14:39:00 UTC · paused"
