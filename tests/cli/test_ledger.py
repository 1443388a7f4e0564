"""`drumline ledger` and `drumline ledger verify`, on a store file that a fleet has left."""

import sqlite3
from contextlib import closing

import pytest

from drumline.model.instant import to_millis
from drumline.model.schedule import Coordination, Misfire
from tests.cli.ledger import NOON


def forget(shop, *instants: int) -> None:
    """Take rows out of the ledger, as no purge would."""
    with closing(sqlite3.connect(shop.folder / "drumline.db")) as connection:
        for second in instants:
            mark = str(to_millis(NOON) + second * 1000)
            assert connection.execute("delete from drumline_tick where mark = ?", (mark,)).rowcount == 1
        connection.commit()


def test_rows_are_listed_newest_first(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 20)
    rows = shop.run("ledger", "tick", "--store", shop.store, "--json").json
    assert [(row["instant"], row["decision"]) for row in rows] == [
        ("2026-05-05T12:00:20.000Z", "fired"),
        ("2026-05-05T12:00:10.000Z", "fired"),
        ("2026-05-05T12:00:00.000Z", "changed"),
    ]
    assert (rows[0]["by"], rows[0]["reason"], rows[0]["lateness"]) == ("web-1:a", "on time", 0)
    assert shop.show(rows[0]["job_id"])["tick"] == rows[0]["instant"]
    table = shop.run("ledger", "--store", shop.store).out
    assert table.splitlines()[0].split() == [
        "INSTANT",
        "SCHEDULE",
        "DECISION",
        "BY",
        "LATE",
        "RAN",
        "OUTCOME",
        "JOB",
        "REASON",
    ]
    assert "web-1:a" in table
    assert rows[0]["job_id"] in table


def test_what_came_of_a_ticks_job_is_shown(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 10)
    ledger.run_jobs(taking=1.5)
    (row,) = shop.run("ledger", "tick", "--limit", "1", "--store", shop.store, "--json").json
    assert (row["outcome"], row["run_time"]) == ("done", 1.5)
    cells = shop.run("ledger", "tick", "--limit", "1", "--store", shop.store).out.splitlines()[1].split()
    assert cells[4:7] == ["0s", "1.5s", "done"]


def test_a_limit_is_said(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 50)
    answer = shop.run("ledger", "--limit", "2", "--store", shop.store)
    assert len(answer.out.splitlines()) == 3
    assert answer.err == "drumline: there are more: the newest 2 are shown, --limit shows more\n"


def test_the_ticks_of_one_instant_stand_together_with_how_many_replicas_have_one(shop, ledger):
    ledger.declare("warm", every="10s", coordination=Coordination.PER_REPLICA)
    ledger.beat("a:1", "b:2", "c:3")
    ledger.play("warm", 30, "a:1", "b:2", "c:3")
    forget_one = "delete from drumline_tick where replica = 'b:2' and mark = ?"
    with closing(sqlite3.connect(shop.folder / "drumline.db")) as connection:
        connection.execute(forget_one, (str(to_millis(NOON) + 20_000),))
        connection.commit()
    lines = shop.run("ledger", "warm", "--store", shop.store).out.splitlines()
    assert ["3 of 3 replicas" in lines[1], "2 of 3 replicas" in lines[2], "3 of 3 replicas" in lines[3]] == [True] * 3
    rows = shop.run("ledger", "warm", "--limit", "2", "--store", shop.store, "--json").json
    assert [row["replicas"] for row in rows] == 3 * [{"recorded": 3, "expected": 3}] + 2 * [
        {"recorded": 2, "expected": 3}
    ]


def test_a_replica_that_runs_but_has_no_tick_is_counted(shop, ledger):
    ledger.declare("warm", every="10s", coordination=Coordination.PER_REPLICA)
    ledger.beat("a:1", "b:2")
    ledger.beat("other:3", tasks=["another"])
    ledger.play("warm", 10, "a:1")
    assert "1 of 2 replicas" in shop.run("ledger", "warm", "--store", shop.store).out


def test_a_pause_tells_from_when_to_when_and_how_many_instants(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 12)
    ledger.set_paused("tick", paused=True, why="a deploy")
    ledger.clock.advance(30)
    ledger.declare("tick", every="1s")
    ledger.clock.advance(30)
    ledger.set_paused("tick", paused=False)
    rows = shop.run("ledger", "tick", "--limit", "3", "--store", shop.store, "--json").json
    second, first = (row for row in rows if row["decision"] == "paused")
    assert (second["by"], second["reason"], first["reason"]) == ("ada", "a deploy", "a deploy")
    # 20, 30 and 40 of the first rule; 43 to 72 of the second.
    assert (first["instant"][17:19], first["until"][17:19], first["count"]) == ("12", "42", 3)
    assert (second["instant"][17:19], second["until"][17:19], second["count"]) == ("42", "12", 30)
    line = shop.run("ledger", "tick", "--limit", "1", "--store", shop.store).out.splitlines()[1]
    assert "from 2026-05-05T12:00:42.000Z to 2026-05-05T12:01:12.000Z, 30 instants; a deploy" in line


def test_an_orphaning_that_lasts_has_no_end(shop, ledger):
    ledger.declare("tick", every="10s", in_code=True)
    ledger.play("tick", 12)
    ledger.orphan("tick")
    (row,) = shop.run("ledger", "tick", "--limit", "1", "--store", shop.store, "--json").json
    assert (row["decision"], row["until"], row["count"]) == ("orphaned", None, None)
    assert "from 2026-05-05T12:00:10.000Z to now, " in shop.run("ledger", "tick", "--store", shop.store).out


def test_an_orphaning_ends_when_the_schedule_is_declared_again(shop, ledger):
    ledger.declare("tick", every="10s", in_code=True)
    ledger.play("tick", 12)
    ledger.orphan("tick")
    ledger.clock.advance(30)
    ledger.declare("tick", every="10s", in_code=True)
    _, row = shop.run("ledger", "tick", "--limit", "2", "--store", shop.store, "--json").json
    assert (row["until"], row["count"]) == ("2026-05-05T12:00:42.000Z", 3)


def test_one_row_for_many_missed_instants_tells_how_many(shop, ledger):
    ledger.declare("tick", every="1s")
    ledger.clock.advance(1500)
    ledger.fire("tick")
    lines = shop.run("ledger", "--limit", "2000", "--store", shop.store).out.splitlines()
    (shared,) = [line for line in lines if line.startswith("2026-05-05T12:00:01.000Z")]
    assert "to 2026-05-05T12:08:15.000Z, 495 instants; " in shared


def test_the_ledger_of_a_withdrawn_schedule_is_still_listed(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.withdraw("tick")
    assert len(shop.run("ledger", "tick", "--store", shop.store, "--json").json) == 2
    assert shop.run("ledger", "verify", "tick", "--store", shop.store).code == 0


@pytest.mark.parametrize("words", [("ledger", "tikc"), ("ledger", "verify", "tikc")])
def test_an_unknown_schedule_is_not_found_and_a_near_one_suggested(shop, ledger, words):
    ledger.declare("tick", every="10s")
    answer = shop.run(*words, "--store", shop.store)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == "drumline: schedule 'tikc' is not known; did you mean 'tick'?\n"


def test_verifying_a_whole_ledger_says_so(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 35)
    ledger.declare("tock", every="5s")
    ledger.play("tock", 12)
    answer = shop.run("ledger", "verify", "--to", "2026-05-05T12:00:30Z", "--store", shop.store)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert [line.split() for line in lines[1:3]] == [["tick", "3", "0", "0", "0"], ["tock", "0", "0", "0", "0"]]
    assert lines[-1] == "missing 0, duplicate 0, late 0"


def test_verifying_finds_what_is_missing(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 60)
    forget(shop, 20, 30)
    discard_jobs(shop)
    answer = shop.run("ledger", "verify", "tick", "--store", shop.store)
    assert answer.code == 1
    assert "tick: missing, 2026-05-05T12:00:20.000Z to 2026-05-05T12:00:30.000Z, 2 instants" in answer.out
    assert answer.out.splitlines()[-1] == "missing 2, duplicate 0, late 0"
    found = shop.run("ledger", "verify", "--store", shop.store, "--json").json
    assert (found["missing"], found["duplicate"], found["late"]) == (2, 0, 0)
    (schedule,) = found["schedules"]
    assert (schedule["schedule"], schedule["instants"], schedule["missing"]) == ("tick", 6, 2)
    missing = schedule["found"][0]
    assert (missing["kind"], missing["from"][17:19], missing["to"][17:19], missing["count"]) == (
        "missing",
        "20",
        "30",
        2,
    )


def test_verifying_looks_at_the_range_alone(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 60)
    forget(shop, 20)
    discard_jobs(shop)
    words = ("ledger", "verify", "tick", "--store", shop.store)
    assert shop.run(*words, "--from", "2026-05-05T12:00:25Z", "--to", "2026-05-05T12:01:00Z").code == 0
    assert shop.run(*words, "--from", "2026-05-05T12:00:20Z", "--to", "2026-05-05T12:00:20Z").code == 1


def test_verifying_finds_a_job_that_the_ledger_does_not_name(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 30)
    with closing(sqlite3.connect(shop.folder / "drumline.db")) as connection:
        connection.execute(
            "update drumline_job set tick = ? where tick = ?", (to_millis(NOON) + 10_000, to_millis(NOON) + 20_000)
        )
        connection.commit()
    answer = shop.run("ledger", "verify", "tick", "--store", shop.store)
    assert answer.code == 1
    assert "tick: duplicate, 2026-05-05T12:00:10.000Z: jobs " in answer.out
    assert answer.out.splitlines()[-1] == "missing 0, duplicate 1, late 0"


def test_verifying_tells_what_is_late_and_is_content(shop, ledger):
    ledger.declare("tick", every="10s", misfire=Misfire.ALL)
    ledger.clock.advance(100)
    ledger.fire("tick")
    answer = shop.run("ledger", "verify", "tick", "--to", "2026-05-05T12:01:40Z", "--store", shop.store)
    assert answer.code == 0
    assert "tick: … late: 4 more of these, --json tells them all" in answer.out
    assert answer.out.splitlines()[-1] == "missing 0, duplicate 0, late 9"


def test_verifying_tells_what_nobody_has_decided_yet(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 10)
    answer = shop.run("ledger", "verify", "tick", "--to", "2026-05-05T12:00:40Z", "--store", shop.store)
    assert answer.code == 0
    assert "due, and will be decided once a scheduler runs, 2026-05-05T12:00:20.000Z to" in answer.out


def test_verifying_says_what_is_unknown(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 40)
    with closing(sqlite3.connect(shop.folder / "drumline.db")) as connection:
        connection.execute("delete from drumline_tick where instant < ?", (to_millis(NOON) + 25_000,))
        connection.commit()
    answer = shop.run("ledger", "verify", "tick", "--to", "2026-05-05T12:00:40Z", "--store", shop.store)
    assert answer.code == 0
    assert "tick: unknown: the ledger of that time has been purged, 2026-05-05T12:00:00.000Z to" in answer.out


def discard_jobs(shop) -> None:
    with closing(sqlite3.connect(shop.folder / "drumline.db")) as connection:
        connection.execute("delete from drumline_job")
        connection.commit()


def test_verifying_a_range_needs_no_older_rows_than_those_that_tell_which_rule_held(shop, ledger):
    ledger.declare("tick", every="1s", misfire=Misfire.ALL, misfire_limit=5000)
    ledger.clock.advance(1500)
    ledger.fire("tick")
    ledger.play("tick", 10)
    with closing(sqlite3.connect(shop.folder / "drumline.db")) as connection:
        connection.execute("update drumline_tick set decision = '?' where instant < ?", (to_millis(NOON) + 300_000,))
        connection.commit()
    span = ("--from", "2026-05-05T12:25:01Z", "--to", "2026-05-05T12:25:10Z")
    for words in (("verify", "tick"), ("verify",)):
        (found,) = shop.run("ledger", *words, *span, "--store", shop.store, "--json").json["schedules"]
        assert (found["schedule"], found["instants"], found["missing"]) == ("tick", 10, 0)


def test_verifying_a_range_knows_the_rules_that_held_in_it(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 30)
    ledger.declare("tick", every="5s")
    ledger.play("tick", 30)
    ledger.declare("gone", every="10s")
    ledger.play("gone", 30)
    ledger.withdraw("gone")
    span = ("--from", "2026-05-05T12:00:15Z", "--to", "2026-05-05T12:01:00Z")
    found = shop.run("ledger", "verify", *span, "--store", shop.store, "--json").json["schedules"]
    # 20 and 30 of the first rule, and 35 to 60 of the second.
    assert [(one["schedule"], one["instants"], one["missing"]) for one in found] == [("gone", 0, 0), ("tick", 8, 0)]


def test_verifying_an_orphaned_schedule_expects_nothing_since(shop, ledger):
    ledger.declare("tick", every="10s", in_code=True)
    ledger.play("tick", 30)
    ledger.orphan("tick")
    ledger.clock.advance(3600)
    answer = shop.run("ledger", "verify", "tick", "--from", "2026-05-05T12:30:00Z", "--store", shop.store)
    assert (answer.code, "undecided" in answer.out, "will be decided" in answer.out) == (0, False, False)


def test_on_a_terminal_it_is_told_how_many_rows_were_read(shop, ledger, monkeypatch):
    monkeypatch.setattr("drumline.cli.books.is_terminal", lambda: True)
    ledger.declare("tick", every="1s", misfire=Misfire.ALL, misfire_limit=5000)
    ledger.clock.advance(1500)
    ledger.fire("tick")
    answer = shop.run("ledger", "verify", "tick", "--store", shop.store)
    assert answer.err == "\r\033[Ktick: 1,000 rows read\r\033[K"
