import pytest

from drumline import Context
from drumline.clock import ManualClock
from drumline.model.job import JobState
from drumline.web import pace
from drumline.web.answers import Refusal
from drumline.web.api import jobs as jobs_api
from tests.support.build import new_job
from tests.web.browser import bearer
from tests.web.shop import TOKENS, work_off

pytestmark = pytest.mark.asyncio
API = "/admin/jobs/api"
NOBODY = "00000000-0000-7000-8000-000000000000"


async def enqueue(admin, task="send_mail", args=None, **options):
    args = {"user_id": 7} if args is None and task == "send_mail" else args or {}
    answer = await admin.post(f"{API}/jobs", {"task": task, "args": args, "options": options})
    assert answer.status in (200, 201), answer.text
    return answer.json["id"]


async def test_a_job_is_enqueued_by_its_registered_name_and_runs(drum, admin):
    answer = await admin.post(f"{API}/jobs", {"task": "send_mail", "args": {"user_id": 7}, "options": {"priority": 5}})
    assert (answer.status, answer.json["state"], answer.json["priority"]) == (201, "ready", 5)
    await work_off(drum)
    shown = (await admin.get(f"{API}/jobs/{answer.json['id']}")).json
    assert (shown["state"], shown["result"], shown["origin"]) == ("done", "sent Welcome to 7", "http admin")


async def test_the_same_key_answers_with_the_job_that_stands(admin):
    first = await enqueue(admin, key="once")
    answer = await admin.post(f"{API}/jobs", {"task": "send_mail", "args": {"user_id": 8}, "options": {"key": "once"}})
    assert (answer.status, answer.json["id"], answer.json["created"]) == (200, first, False)
    options = {"key": "once", "on_conflict": "raise"}
    answer = await admin.post(f"{API}/jobs", {"task": "send_mail", "args": {"user_id": 8}, "options": options})
    assert answer.status == 409


@pytest.mark.parametrize(
    ("body", "status", "path"),
    [
        ({"task": "no_such"}, 404, None),
        ({"task": "os.system"}, 404, None),
        ({"task": "send_mail", "args": {"user_id": "7"}}, 422, "args.user_id"),
        ({"task": "send_mail", "args": {}}, 422, "args.user_id"),
        ({"task": "send_mail", "args": {"user_id": 7, "colour": 1}}, 422, "args.colour"),
        ({"task": "send_mail", "args": [7]}, 422, "args"),
        ({"task": "send_mail", "args": {"user_id": 7}, "options": {"priority": 101}}, 422, "priority"),
        ({"task": "send_mail", "args": {"user_id": 7}, "options": {"priority": "high"}}, 422, "options.priority"),
        ({"task": "send_mail", "args": {"user_id": 7}, "options": {"colour": 1}}, 422, "options"),
        ({"task": "send_mail", "args": {"user_id": 7}, "options": {"at": "0001-01-01T00:00:00+23:00"}}, 422, "at"),
        ({"task": "send_mail", "args": {"user_id": 7}, "options": {"queue": "@private"}}, 422, "queue"),
        ({}, 422, ""),
    ],
)
async def test_what_does_not_fit_is_refused_with_its_path_and_changes_nothing(drum, admin, body, status, path):
    answer = await admin.post(f"{API}/jobs", body)
    assert answer.status == status, answer.text
    if path is not None:
        assert [problem["path"] for problem in answer.json["problems"]] == [path], answer.text
    assert (await drum.counts()).unfinished == 0


async def test_pages_follow_each_other_by_their_cursor(admin):
    made = [await enqueue(admin) for _ in range(5)]
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await admin.get(f"{API}/jobs?limit=2&after={cursor.replace(' ', '%20')}")).json
        found += [job["id"] for job in page["jobs"]]
        cursor = page["next"]
    assert found == made[::-1]


async def test_filters_narrow_the_list(drum, admin):
    await enqueue(admin, tags=["vip"], meta={"shop": 3})
    await enqueue(admin, "fail")
    await work_off(drum)
    for query, tasks in (
        ("state=dead", ["fail"]),
        ("state=done,dead", ["fail", "send_mail"]),
        ("tag=vip", ["send_mail"]),
        ("queue=mail", ["send_mail"]),
        ("meta=%7B%22shop%22:3%7D", ["send_mail"]),
        ("error=boom", ["fail"]),
        ("created_to=2020-01-01T00:00:00Z", []),
    ):
        assert [job["task"] for job in (await admin.get(f"{API}/jobs?{query}")).json["jobs"]] == tasks, query


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=201", "limit=x", "limit=-1", "limit=%D9%A3", "after=x"),
        *("state=gone", "colour=red", "task=a&task=b", "meta=5", "meta=%7B", "created_from=yesterday", "source=x"),
        *("task=%00", "created_to=0001-01-01T00:00:00%2B23:00", 'meta={"a":[1]}', "meta=" + "[" * 2000),
    ],
)
async def test_a_query_that_does_not_fit_is_refused(admin, query):
    answer = await admin.get(f"{API}/jobs?{query}")
    assert answer.status == 422, answer.text


async def test_one_job_is_shown_with_attempts_and_log_lines(drum, admin):
    job_id = await enqueue(admin, "fail", {"words": "no such order"})
    await work_off(drum)
    shown = (await admin.get(f"{API}/jobs/{job_id.upper()}")).json
    assert (shown["state"], shown["attempts"][0]["error"]["message"]) == ("dead", "no such order ")
    assert shown["logs"][0]["message"] == "about to fail with "


async def test_one_job_is_shown_with_the_mark_of_lines_that_were_cut(drum, admin):
    @drum.task
    async def chatter(ctx: Context) -> None:
        for number in range(1_001):
            ctx.log(f"line {number}")

    job = await chatter.enqueue()
    await work_off(drum)
    shown = (await admin.get(f"{API}/jobs/{job.id}")).json
    assert (len(shown["logs"]), shown["logs"][-1]["message"]) == (1_001, "only the first 1,000 lines are kept")


@pytest.mark.parametrize("path", ["nothing", NOBODY, "..%2f..%2fetc%2fpasswd", "%00"])
async def test_a_job_that_is_not_there_is_404(admin, path):
    assert (await admin.get(f"{API}/jobs/{path}")).status == 404
    for verb in ("cancel", "retry", "discard"):
        assert (await admin.post(f"{API}/jobs/{path}/{verb}")).status == 404


async def test_verbs_act_refuse_and_stand_in_the_audit_with_who(drum, admin):
    job_id = await enqueue(admin)
    assert (await admin.post(f"{API}/jobs/{job_id}/retry")).status == 409
    answer = await admin.post(f"{API}/jobs/{job_id}/cancel", {"reason": "a mistake"})
    assert (answer.status, answer.json["answer"]) == (200, "applied")
    assert (await admin.post(f"{API}/jobs/{job_id}/retry")).status == 200
    assert (await admin.post(f"{API}/jobs/{job_id}/reschedule", {"delay": "1h"})).status == 200
    assert (await admin.post(f"{API}/jobs/{job_id}/reschedule")).status == 422
    await admin.post(f"{API}/jobs/{job_id}/cancel")
    assert (await admin.post(f"{API}/jobs/{job_id}/discard")).status == 200
    rows = (await admin.get(f"{API}/audit?limit=200")).json["audit"]
    assert [row["action"] for row in rows] == ["discard", "cancel", "reschedule", "retry", "cancel", "retry", "enqueue"]
    assert {tuple(row["targets"]) for row in rows} == {(job_id,)}
    assert {(row["who"], row["via"]) for row in rows} == {("admin", "http")}
    assert rows[4]["why"] == "a mistake"


async def test_a_running_job_is_asked_to_stop(drum, admin):
    job_id = await enqueue(admin)
    store = await drum.store()
    from drumline.model.claim import Share

    await store.claim("other:1", [Share("mail", 1)], 1, ["send_mail"], "token")
    answer = await admin.post(f"{API}/jobs/{job_id}/cancel")
    assert (answer.status, answer.json["answer"]) == (202, "requested")


async def test_many_jobs_are_acted_on_by_ids_or_by_a_filter(drum, admin):
    ids = [await enqueue(admin) for _ in range(3)]
    answer = await admin.post(f"{API}/jobs/cancel", {"ids": [ids[0], NOBODY]})
    assert answer.json == {"answers": {ids[0]: "applied", NOBODY: "not found"}, "more": False}
    answer = await admin.post(f"{API}/jobs/cancel", {"filter": {"state": "ready"}})
    assert sorted(answer.json["answers"]) == sorted(ids[1:])
    answer = await admin.post(f"{API}/jobs/retry", {"filter": {"state": ["cancelled"], "queue": "mail"}})
    assert set(answer.json["answers"].values()) == {"applied"}


@pytest.mark.parametrize(
    "body", [{}, {"filter": {}}, {"ids": ["a"], "filter": {"task": "x"}}, {"ids": "all"}, {"all": 1}]
)
async def test_many_jobs_must_be_named(admin, body):
    assert (await admin.post(f"{API}/jobs/cancel", body)).status == 422


@pytest.mark.parametrize(
    "where", [{"state": ""}, {"state": ","}, {"state": []}, {"meta": {}}, {"error": ""}, {"task": None}]
)
async def test_a_filter_that_names_nothing_is_not_everything(drum, admin, where):
    job = await drum.enqueue("send_mail", user_id=1)
    assert (await admin.post(f"{API}/jobs/cancel", {"filter": where})).status == 422
    assert (await job.refresh()).state == "ready"


async def test_metadata_with_nul_are_refused(drum, admin):
    body = {"task": "send_mail", "args": {"user_id": 7}, "options": {"meta": {"a": "x\0"}}}
    assert (await admin.post(f"{API}/jobs", body)).status == 422
    assert (await admin.post(f"{API}/jobs/cancel", {"filter": {"meta": {"a": "x\0"}}})).status == 422
    assert (await admin.get(f'{API}/jobs?meta={{"a":"x"}}')).json["jobs"] == []


@pytest.mark.parametrize("word", ["task", "queue", "tag", "key", "schedule", "origin", "error"])
async def test_a_filter_with_nul_is_refused(drum, admin, word):
    answer = await admin.post(f"{API}/jobs/cancel", {"filter": {word: "x\0"}})
    assert (answer.status, word in answer.text) == (422, True)


async def test_an_operator_may_not_discard(browser):
    operator = browser.known_as(bearer(TOKENS["operator"]))
    assert (await operator.post(f"{API}/jobs/discard", {"filter": {"state": "dead"}})).status == 403


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b'{"task": "send_mail"', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"task=send_mail", "application/x-www-form-urlencoded", 415),
        (b'{"task": "send_mail"}', "text/plain", 415),
        (b"[" * 200_000, "application/json", 422),
        (b'{"task": "send_mail", "args": {"user_id": 1e999}}', "application/json", 422),
        (b'"' + b"x" * 330_000 + b'"', "application/json", 413),
    ],
)
async def test_hostile_bodies_are_refused_and_change_nothing(drum, admin, body, content_type, status):
    answer = await admin.ask("POST", f"{API}/jobs", body, {"content-type": content_type})
    assert answer.status == status, answer.text
    assert (await drum.counts()).unfinished == 0


async def test_a_body_that_is_announced_as_too_large_is_not_read(admin):
    answer = await admin.ask("POST", f"{API}/jobs", b"{}", {"content-length": str(10_000_000)})
    assert answer.status == 413


async def test_too_many_actions_are_slowed_down(admin, monkeypatch):
    monkeypatch.setattr(pace, "PER_SECOND", 0.0)
    monkeypatch.setattr(pace, "AT_ONCE", 2.0)
    answers = [await admin.post(f"{API}/jobs/{NOBODY}/cancel") for _ in range(3)]
    assert [answer.status for answer in answers] == [404, 404, 429]
    assert answers[2].headers["retry-after"] == "1"
    assert (await admin.get(f"{API}/jobs")).status == 200


async def test_the_right_to_act_comes_back_with_time():
    clock = ManualClock()
    bucket = pace.Pace(clock)
    for _ in range(200):
        bucket.check("ann")
    with pytest.raises(Refusal):
        bucket.check("ann")
    bucket.check("bob")
    clock.advance(0.02)
    bucket.check("ann")


async def test_the_private_jobs_of_replicas_do_not_hide_those_that_are_meant(drum, admin, monkeypatch):
    monkeypatch.setattr(jobs_api, "MOST_AT_ONCE", 2)
    public = [await enqueue(admin) for _ in range(2)]
    await (await drum.store()).enqueue([new_job("send_mail", queue="@web-1") for _ in range(3)])
    answer = await admin.post(f"{API}/jobs/cancel", {"filter": {"task": "send_mail"}})
    assert answer.json == {"answers": dict.fromkeys(reversed(public), "applied"), "more": False}
    assert {(await drum.jobs.get(job)).state for job in public} == {JobState.CANCELLED}
