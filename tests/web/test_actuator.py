import asyncio
import re
from pathlib import Path

import pytest

from drumline import Context, Drumline, Rule, Schedule
from drumline.events import ClaimLost, StaleWrite
from drumline.model.query import By
from drumline.model.replica import ReplicaInfo
from drumline.web import metrics
from drumline.web.metrics import OTHER, Labels
from tests.support.waiting import eventually
from tests.web.browser import Browser, bearer
from tests.web.shapes import OF_A_SCHEDULE, OF_A_TASK
from tests.web.shop import AUTH, TOKENS, make_shop, serve, work_off

pytestmark = pytest.mark.asyncio
GUIDE = Path(__file__).parents[2] / "docs" / "http.md"


async def test_tasks_tell_of_every_schedule_in_the_known_shape(drum, admin):
    await work_off(drum)
    shown = (await admin.get("/actuator/tasks")).json["scheduled_tasks"]["tidy"]
    assert list(shown) == OF_A_SCHEDULE
    assert (shown["schedule"], shown["coordination"], shown["status"]) == ("every 1h", "fleet", "idle")
    assert shown["scheduler_backend"] == (await drum.store()).kind
    assert (shown["total_runs"], shown["last_tick"], shown["paused"]) == (0, None, False)
    assert shown["next_run_at"].endswith("Z")


async def test_a_schedule_of_a_zone_that_this_machine_lacks_does_not_hide_the_others(drum, admin):
    await work_off(drum)
    rule = Rule(cron="0 9 * * *", timezone="Mars/Olympus")
    store = await drum.store()
    await store.declare([Schedule(name="greet", task="send_mail", rule=rule, in_code=False)], by=By("ada"))
    await drum.schedules.refresh()
    shown = (await admin.get("/actuator/tasks")).json["scheduled_tasks"]
    assert (shown["greet"]["schedule"], shown["greet"]["next_run_at"]) == ("cron 0 9 * * * Mars/Olympus", None)
    assert shown["tidy"]["next_run_at"].endswith("Z")
    listed = (await admin.get("/admin/jobs/api/schedules")).json["schedules"]
    assert {row["name"]: row["next_run_at"] is None for row in listed} == {"greet": True, "tidy": False}


async def test_tasks_follow_a_run_and_a_pause(drum, admin):
    await work_off(drum)
    await drum.schedules.trigger("tidy")
    await drum.schedules.pause("tidy")
    await work_off(drum)
    shown = (await admin.get("/actuator/tasks")).json["scheduled_tasks"]["tidy"]
    assert (shown["total_runs"], shown["paused"], shown["next_run_at"]) == (1, True, None)


async def test_jobs_tell_of_every_task_and_queue(drum, admin):
    await drum.enqueue("send_mail", user_id=1)
    await drum.enqueue("fail", words="no such order")
    await work_off(drum)
    await drum.find_task("send_mail").using(delay="1h").enqueue(user_id=2)
    await drum.enqueue("send_mail", user_id=3)
    shown = (await admin.get("/actuator/jobs")).json
    assert list(shown["jobs"]["send_mail"]) == OF_A_TASK
    assert [shown["jobs"]["send_mail"][key] for key in OF_A_TASK] == [2, 0, 1, 0, 0, None]
    assert [shown["jobs"]["fail"][key] for key in OF_A_TASK] == [0, 0, 0, 1, 1, "ValueError: no such order "]
    assert shown["queues"]["mail"]["depth"] == 2
    assert shown["queues"]["mail"]["oldest_waiting_age_ms"] >= 0
    assert shown["queues"]["default"]["oldest_waiting_age_ms"] == 0


async def test_two_replicas_differ_by_nothing_but_their_names(monkeypatch):
    answers: list[object] = []
    for name in ("web-1", "web-2"):
        monkeypatch.setenv("DRUMLINE_SCHEDULER__REPLICA_ID", name)
        drum = make_shop("sqlite:///shop.db")
        if not answers:
            await drum.enqueue("fail")
            await work_off(drum)
        browser = Browser(serve(drum, AUTH)).known_as(bearer(TOKENS["viewer"]))
        tasks = (await browser.get("/actuator/tasks")).json
        assert tasks["scheduled_tasks"]["tidy"].pop("replica_id") == name
        answers.append((tasks, (await browser.get("/actuator/jobs")).json))
        await drum.close()
    assert answers[0] == answers[1]


async def test_private_queues_are_not_shown(admin, drum):
    ran: list[str] = []
    leaving = asyncio.Event()

    @drum.schedule(every="1h", coordination="per_replica", run_on_startup=True, max_attempts=1)
    async def warm(ctx: Context) -> None:
        ran.append(ctx.queue)

    # Not a drain, which may end before the tick of the start was fired.
    running = asyncio.create_task(drum.run(until=leaving))
    await eventually(lambda: ran, 20)
    leaving.set()
    await running
    assert [queue[0] for queue in ran] == ["@"]
    assert "@" not in (await admin.get("/actuator/jobs")).text
    assert "@" not in (await admin.get("/actuator/metrics")).text


async def test_info_tells_what_answers(drum, admin):
    shown = (await admin.get("/actuator/info")).json
    assert (shown["store"], shown["tasks"], shown["replica_id"]) == ((await drum.store()).kind, 3, drum.replica_name)


async def test_metrics_tell_of_the_fleet_and_of_this_replica(drum, admin):
    await drum.enqueue("send_mail", user_id=1)
    await drum.enqueue("fail")
    await work_off(drum)
    lines = (await admin.get("/actuator/metrics")).text.splitlines()
    assert 'drumline_jobs{queue="mail",state="done",task="send_mail"} 1.0' in lines
    assert 'drumline_jobs_done_total{queue="mail",task="send_mail"} 1.0' in lines
    assert 'drumline_attempts_failed_total{queue="default",task="fail"} 1.0' in lines
    assert 'drumline_attempts_total{ended="failed",queue="default",task="fail"} 1.0' in lines
    assert 'drumline_dead_total{queue="default",task="fail"} 1.0' in lines
    assert 'drumline_run_seconds_count{queue="mail",task="send_mail"} 1.0' in lines
    assert 'drumline_schedule_runs_total{schedule="tidy"} 0.0' in lines


async def test_metrics_tell_of_waits_of_lateness_and_of_claims_that_were_lost(drum, admin):
    ran, leaving = asyncio.Event(), asyncio.Event()

    @drum.schedule(every="50ms")
    async def often() -> None:
        ran.set()

    running = asyncio.create_task(drum.run(until=leaving))
    await asyncio.wait_for(ran.wait(), 20)
    leaving.set()
    await running
    drum.events.emit(StaleWrite("a job", 7, "finish"))
    drum.events.emit(ClaimLost("a job", 7))
    text = (await admin.get("/actuator/metrics")).text
    assert re.search(r'^drumline_tick_lag_seconds_count{schedule="often"} [1-9]', text, re.MULTILINE)
    assert re.search(r'^drumline_wait_seconds_count{queue="default",task="often"} [1-9]', text, re.MULTILINE)
    assert "\ndrumline_claims_lost_total 1.0\n" in text
    assert '\ndrumline_stale_writes_total{write="finish"} 1.0\n' in text


async def test_every_metric_stands_in_the_guide_and_no_other(drum, admin):
    text = (await admin.get("/actuator/metrics")).text
    told = set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    listed = set(re.findall(r"`(drumline_\w+)`", GUIDE.read_text()))
    assert {name for name in told if not name.endswith("_created")} == listed


async def test_a_queue_that_nobody_serves_is_a_gauge(drum, admin):
    await drum.enqueue("send_mail", user_id=1)
    await drum.enqueue("fail")
    store = await drum.store()

    async def find_unserved():
        lines = (await admin.get("/actuator/metrics")).text.splitlines()
        return [line for line in lines if line.startswith("drumline_queue_unserved{")]

    assert sorted(await find_unserved()) == [
        'drumline_queue_unserved{queue="default"} 1.0',
        'drumline_queue_unserved{queue="mail"} 1.0',
    ]
    await store.beat(ReplicaInfo(id="a:1", name="a", queues=("mail", "default"), tasks=("send_mail",)), [])
    assert await find_unserved() == ['drumline_queue_unserved{queue="default"} 1.0']
    await drum.queues.pause("default")
    assert await find_unserved() == []


async def test_metrics_do_not_touch_the_registry_of_the_program(drum, admin):
    from prometheus_client import REGISTRY

    await admin.get("/actuator/metrics")
    assert not [metric.name for metric in REGISTRY.collect() if metric.name.startswith("drumline")]


async def test_labels_are_bounded():
    labels = Labels(most=2)
    assert [labels.bound(name) for name in ("a", "b", "c", "a")] == ["a", "b", OTHER, "a"]


async def test_what_there_is_no_label_for_is_added_up(drum, admin, monkeypatch):
    monkeypatch.setattr(metrics, "MOST_LABELS", 1)
    for name in ("a", "b", "c"):
        await drum.find_task("send_mail").using(queue=name).enqueue(user_id=1)
    lines = (await admin.get("/actuator/metrics")).text.splitlines()
    assert 'drumline_jobs{queue="a",state="ready",task="send_mail"} 1.0' in lines
    assert 'drumline_jobs{queue="other",state="ready",task="other"} 2.0' in lines


async def test_a_missing_package_for_metrics_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    browser = Browser(serve(Drumline("memory://"), AUTH)).known_as(bearer(TOKENS["viewer"]))
    answer = await browser.get("/actuator/metrics")
    assert (answer.status, "drumline[metrics]" in answer.text) == (501, True)
