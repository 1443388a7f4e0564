"""`drumline schedules`, on a store file that a fleet has left."""

import pytest

from drumline.model.schedule import Misfire, Overlap, Rule, Schedule
from drumline.model.view import instant_text
from tests.cli.ledger import BY, NOON


def test_schedules_are_listed_without_code(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 25)
    (row,) = shop.run("schedules", "list", "--store", shop.store, "--json").json
    assert (row["name"], row["schedule"], row["task"], row["coordination"]) == ("tick", "every 10s", "work", "fleet")
    assert (row["paused"], row["orphaned"], row["stored"], row["state"]) == (False, False, True, "idle")
    assert (row["current_leader"], row["last_fired_at"]) == ("web-1", "2026-05-05T12:00:20.000Z")
    assert row["last_tick"] == f"tick:{int(NOON.timestamp()) // 10 + 2}"
    assert row["next_run_at"].endswith("0.000Z")
    table = shop.run("schedules", "--store", shop.store).out
    assert table.startswith("SCHEDULE")
    assert "every 10s" in table


def test_a_schedule_of_a_zone_that_this_machine_lacks_is_listed_without_a_next_instant(shop, ledger):
    rule = Rule(cron="0 9 * * *", timezone="Mars/Olympus")
    ledger.store.declare([Schedule(name="greet", task="work", rule=rule, in_code=False)], by=BY).run()
    ledger.declare("tick", every="10s")
    rows = shop.run("schedules", "list", "--store", shop.store, "--json").json
    assert {row["name"]: row["next_run_at"] is None for row in rows} == {"greet": True, "tick": False}


def test_a_schedule_that_only_the_code_has_is_listed_with_the_app(shop):
    (shop.folder / "clock_shop.py").write_text(CLOCKS)
    (row,) = shop.run("schedules", "--app", "clock_shop:drum", "--json").json
    assert (row["name"], row["stored"], row["state"]) == ("nightly", False, "not stored yet")
    assert shop.run("schedules", "--store", shop.store, "--json").json == []


def test_a_schedule_that_the_code_has_but_no_replica_runs_is_orphaned(shop, ledger):
    (shop.folder / "clock_shop.py").write_text(CLOCKS)
    ledger.declare("nightly", every="10s", in_code=True)
    (row,) = shop.run("schedules", "--app", "clock_shop:drum", "--json").json
    assert (row["orphaned"], row["state"], row["next_run_at"]) == (True, "orphaned", None)


def test_the_next_instants_tell_what_the_clocks_do_to_them(shop, ledger):
    ledger.declare("nightly", cron="30 2 * * *", timezone="Europe/Berlin")
    words = ("schedules", "next", "nightly", "--store", shop.store)
    spring = shop.run(*words, "-n", "3", "--from", "2027-03-27T00:00:00Z", "--json").json
    assert [(row["local"], row["zone"], row["utc"], row["note"] is None) for row in spring] == [
        ("2027-03-27T02:30:00.000+01:00", "CET", "2027-03-27T01:30:00.000Z", True),
        ("2027-03-28T03:00:00.000+02:00", "CEST", "2027-03-28T01:00:00.000Z", False),
        ("2027-03-29T02:30:00.000+02:00", "CEST", "2027-03-29T00:30:00.000Z", True),
    ]
    autumn = shop.run(*words, "-n", "2", "--from", "2027-10-31T00:00:00Z").out.splitlines()
    assert autumn[1].split()[:3] == ["2027-10-31", "02:30:00", "CEST"]
    assert autumn[1].endswith("happens twice: only the first runs")
    assert autumn[2].split() == ["2027-11-01", "02:30:00", "CET", "2027-11-01T01:30:00.000Z"]


def test_the_next_instants_are_those_that_fire_across_both_changes_of_the_year(shop, ledger):
    ledger.declare("nightly", cron="30 2 * * *", timezone="Europe/Berlin", misfire=Misfire.ALL)
    words = ("--from", NOON.isoformat(), "-n", "335", "--store", shop.store, "--json")
    rows = shop.run("schedules", "next", "nightly", *words).json
    ledger.play("nightly", 335 * 86_400, step=86_400)
    fired = sorted(instant_text(tick.instant) for tick in ledger.fired("nightly"))
    assert [row["utc"] for row in rows] == fired
    assert [row["utc"][:10] for row in rows if row["note"] is not None] == ["2026-10-25", "2027-03-28"]


def test_without_a_beginning_the_next_instants_lie_ahead(shop, ledger):
    ledger.declare("tick", every="365d")
    (row,) = shop.run("schedules", "next", "tick", "-n", "1", "--store", shop.store, "--json").json
    (listed,) = shop.run("schedules", "list", "--store", shop.store, "--json").json
    assert row["utc"] == listed["next_run_at"]


def test_a_paused_schedule_has_next_instants_and_a_warning(shop, ledger):
    ledger.declare("tick", every="1h", paused=True)
    answer = shop.run("schedules", "next", "tick", "-n", "1", "--store", shop.store)
    assert answer.code == 0
    assert answer.err == "drumline: schedule tick is paused: none of these fires while it is\n"


def test_a_schedule_of_the_code_alone_can_be_previewed(shop):
    (shop.folder / "clock_shop.py").write_text(CLOCKS)
    assert shop.run("schedules", "next", "nightly", "-n", "1", "--app", "clock_shop:drum").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("next", "tikc"),
        ("pause", "tikc"),
        ("resume", "tikc"),
        ("trigger", "tikc"),
        ("unregister", "tikc"),
        ("backfill", "tikc", "--from", "2026-05-05T12:00:00Z", "--to", "2026-05-05T12:01:00Z"),
    ],
)
def test_an_unknown_schedule_is_not_found_and_a_near_one_suggested(shop, ledger, words):
    ledger.declare("tick", every="10s")
    answer = shop.run("schedules", *words, "--store", shop.store)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == "drumline: schedule 'tikc' is not known; did you mean 'tick'?\n"


def test_what_no_replica_has_run_cannot_be_paused(shop):
    (shop.folder / "clock_shop.py").write_text(CLOCKS)
    answer = shop.run("schedules", "pause", "nightly", "--app", "clock_shop:drum")
    assert answer.code == 3
    assert "no replica has run it yet" in answer.err


def test_a_schedule_is_paused_and_resumed(shop, ledger):
    ledger.declare("tick", every="10s")
    words = ("--store", shop.store)
    assert shop.run("schedules", "pause", "tick", "--reason", "a deploy", *words).out == "schedule tick: paused\n"
    assert shop.run("schedules", "pause", "tick", *words).out == "schedule tick: was paused already\n"
    (row,) = shop.run("schedules", *words, "--json").json
    assert (row["paused"], row["paused_why"], row["next_run_at"]) == (True, "a deploy", None)
    assert "paused: a deploy" in shop.run("schedules", *words).out
    assert shop.run("schedules", "resume", "tick", *words).out == "schedule tick: resumed\n"
    assert shop.run("schedules", "resume", "tick", *words, "--json").json == {"tick": {"changed": False}}


def test_what_stands_before_the_command_counts_for_it(shop, ledger):
    ledger.declare("tick", every="10s")
    other = f"sqlite:///{shop.folder / 'other.db'}"
    (row,) = shop.run("schedules", "--store", shop.store, "--json", "list").json
    assert row["name"] == "tick"
    assert shop.run("schedules", "--store", other, "--json", "list").json == []
    assert shop.run("schedules", "--store", other, "pause", "tick").code == 3
    assert shop.run("schedules", "--store", other, "pause", "tick", "--store", shop.store).code == 0


def test_a_trigger_makes_a_job_also_while_paused(shop, ledger):
    ledger.declare("tick", every="10s", paused=True)
    answer = shop.run("schedules", "trigger", "tick", "--store", shop.store, "--json")
    job = shop.show(answer.json["id"])
    assert (job["schedule"], job["source"], job["state"]) == ("tick", "manual", "ready")
    assert "made" in shop.run("schedules", "trigger", "tick", "--store", shop.store).out


def test_schedules_are_unregistered_and_their_ledger_stays(shop, ledger):
    for name in ("tick", "tock", "tack"):
        ledger.declare(name, every="10s")
    ledger.play("tick", 25)
    words = ("--store", shop.store)
    answer = shop.run("schedules", "unregister", "tick", "tock", "tick", "--reason", "moved", *words)
    assert (answer.code, answer.out) == (0, "schedule tick: unregistered\nschedule tock: unregistered\n")
    assert [row["name"] for row in shop.run("schedules", *words, "--json").json] == ["tack"]
    assert len(shop.run("ledger", "tick", *words, "--json").json) >= 2
    assert shop.run("schedules", "unregister", "tick", *words).code == 3
    assert shop.run("schedules", "unregister", "tack", *words, "--json").json == {"tack": {"changed": True}}
    assert [(row.action, row.by.via, row.by.why) for row in shop.audit()][-2:] == [("unregister", "cli", "moved")] * 2


def test_what_the_code_declares_is_not_unregistered_nor_what_is_named_with_it(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.declare("nightly", every="1h", in_code=True)
    answer = shop.run("schedules", "unregister", "tick", "nightly", "--store", shop.store)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == "drumline: schedule nightly is declared in code: remove it there, or pause it\n"
    assert [row["name"] for row in shop.run("schedules", "--store", shop.store, "--json").json] == ["nightly", "tick"]


def test_a_trigger_and_a_backfill_stand_in_the_audit(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 20)
    shop.run("schedules", "trigger", "tick", "--reason", "to see it", "--store", shop.store)
    span = ("--from", "2026-05-05T11:59:30Z", "--to", "2026-05-05T11:59:50Z")
    shop.run("schedules", "backfill", "tick", *span, "--reason", "we were down", "--store", shop.store)
    assert {(row.action, row.targets, row.by.via, row.by.why) for row in shop.audit()} == {
        ("trigger", ("tick",), "cli", "to see it"),
        ("backfill", ("tick",), "cli", "we were down"),
    }


def test_a_trigger_that_overlap_forbids_is_refused_with_the_reason(shop, ledger):
    ledger.declare("tick", every="10s", overlap=Overlap.SKIP)
    shop.run("schedules", "trigger", "tick", "--store", shop.store)
    answer = shop.run("schedules", "trigger", "tick", "--store", shop.store)
    assert (answer.code, answer.out) == (1, "")
    assert "a job of it is unfinished and overlap is skip" in answer.err


def test_a_backfill_tells_how_many_jobs_it_made_and_makes_none_twice(shop, ledger):
    ledger.declare("tick", every="10s")
    ledger.play("tick", 20)
    words = ("schedules", "backfill", "tick", "--from", "2026-05-05T11:59:30Z", "--to", "2026-05-05T12:00:20Z")
    answer = shop.run(*words, "--store", shop.store, "--json").json
    # 11:59:30 to 12:00:00; the two after that have fired.
    assert answer["made"] == 4
    assert {shop.show(job_id)["schedule"] for job_id in answer["ids"]} == {"tick"}
    assert shop.run(*words, "--store", shop.store).out == "schedule tick: 0 jobs made\n"


def test_a_backfill_that_ends_before_it_begins_is_refused(shop, ledger):
    ledger.declare("tick", every="10s")
    words = ("--from", "2026-05-05T12:00:20Z", "--to", "2026-05-05T12:00:00Z", "--store", shop.store)
    answer = shop.run("schedules", "backfill", "tick", *words)
    assert answer.code == 2
    assert answer.err.startswith("drumline: --to must be not before --from")


CLOCKS = """
from drumline import Drumline

drum = Drumline()


@drum.schedule(every="10s")
async def nightly() -> None: ...
"""
