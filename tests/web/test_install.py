import asyncio
import signal
import sys
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette

from drumline import Drumline
from drumline.errors import BadOption, DrumlineError, StoreUnreachable
from tests.support.waiting import eventually
from tests.web.browser import Browser, bearer, living
from tests.web.shop import AUTH, TOKENS, make_shop, serve

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("make", [FastAPI, Starlette])
async def test_jobs_run_in_the_web_process_while_the_app_lives(drum, make):
    app = make()
    drum.install(app, auth=AUTH)
    async with living(app):
        job = await drum.enqueue("send_mail", user_id=7)
        assert await job.wait("10s") == "sent Welcome to 7"
        (replica,) = await drum.workers()
        assert replica.info.role == "combined"
    assert [replica.state for replica in await drum.workers() if replica.state != "gone"] == []


async def test_two_sites_at_one_path_are_refused_and_one_under_another_is_reached(drum):
    with pytest.raises(BadOption, match=r"actuator must be a path of its own.*'/ops'"):
        drum.install(Starlette(), auth=AUTH, path="/ops", actuator="/ops")
    app = Starlette()
    drum.install(app, auth=AUTH, path="/ops", actuator="/ops/actuator", role="web")
    async with living(app):
        browser = Browser(app, **bearer(TOKENS["viewer"]))
        assert (await browser.get("/ops/actuator/live")).status == 200
        assert (await browser.get("/ops/api/workers")).status == 200


async def test_the_apps_own_lifespan_is_kept_and_surrounds_the_worker(drum):
    seen = []

    @asynccontextmanager
    async def lifespan(app):
        seen.append(("open", len(drum.running_here)))
        yield {"pool": "a pool"}
        seen.append(("close", len(drum.running_here)))

    app = Starlette(lifespan=lifespan)
    drum.install(app, auth=AUTH)
    async with living(app):
        await eventually(lambda: drum.running_here)
    assert seen == [("open", 0), ("close", 0)]


async def test_a_running_job_is_given_back_without_an_attempt_when_the_app_leaves(monkeypatch):
    monkeypatch.setenv("DRUMLINE_WORKER__SHUTDOWN_TIMEOUT", "10ms")
    drum = make_shop("sqlite:///shop.db")
    begun = asyncio.Event()

    @drum.task
    async def linger() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with living(serve(drum, AUTH)):
        job = await linger.enqueue()
        await asyncio.wait_for(begun.wait(), 10)
    await job.refresh()
    assert (job.state, job.info.attempt) == ("ready", 0)
    await drum.close()


@pytest.mark.parametrize(
    ("role", "runs", "fires"), [("worker", True, False), ("scheduler", False, True), ("web", False, False)]
)
async def test_the_role_says_which_parts_run(drum, role, runs, fires):
    async with living(serve(drum, AUTH, role=role)):
        await eventually(lambda: drum.running_here and drum.running_here[0].has_begun)
        (replica,) = await drum.workers()
        assert (replica.info.role, replica.info.role.fires) == (role, fires)
        job = await drum.enqueue("send_mail", user_id=7)
        if runs:
            await job.wait("10s")
    await job.refresh()
    assert job.state == ("done" if runs else "ready")


async def test_a_replica_that_serves_pages_runs_its_own_ticks(drum):
    ran = asyncio.Event()

    @drum.schedule(every="10ms", coordination="per_replica")
    async def warm() -> None:
        ran.set()

    async with living(serve(drum, AUTH, role="web")):
        await asyncio.wait_for(ran.wait(), 10)


async def test_without_a_role_there_are_pages_and_no_replica(drum):
    app = serve(drum, AUTH, role=None)
    async with living(app):
        assert (await Browser(app).get("/actuator/ready")).text == "ready\n"
        assert await drum.workers() == []


async def test_the_words_follow_the_life_of_the_worker(drum):
    app = serve(drum, AUTH)
    browser = Browser(app)
    async with living(app):
        await eventually(lambda: drum.running_here and drum.running_here[0].has_begun)
        for word, said in (("live", "live"), ("startup", "started"), ("ready", "ready"), ("health", "healthy")):
            answer = await browser.get(f"/actuator/{word}")
            assert (answer.status, answer.text) == (200, f"{said}\n")
        drum.running_here[0].stop()
        assert ((await browser.get("/actuator/ready")).status, (await browser.get("/actuator/live")).status) == (
            503,
            200,
        )


async def test_a_store_that_is_lost_is_not_ready(drum, monkeypatch):
    async def unreachable():
        raise StoreUnreachable

    monkeypatch.setattr(drum, "store", unreachable)
    browser = Browser(serve(drum, AUTH, role=None))
    answer = await browser.get("/actuator/ready")
    assert (answer.status, answer.text) == (503, "lost\n")
    answer = await browser.known_as(bearer(TOKENS["viewer"])).get("/actuator/jobs")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")


async def test_a_signal_is_overheard_and_still_handled_by_the_program(drum):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        async with living(serve(drum, AUTH)):
            await eventually(lambda: drum.running_here and drum.running_here[0].has_begun)
            signal.raise_signal(signal.SIGTERM)
            await eventually(lambda: not drum.running_here)
            assert heard == [signal.SIGTERM]
        signal.raise_signal(signal.SIGTERM)
        assert heard == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


async def test_the_pages_can_be_mounted_anywhere(drum):
    browser = Browser(drum.asgi(auth=AUTH, path=None, actuator="/up")).known_as(bearer(TOKENS["viewer"]))
    assert (await browser.get("/up/jobs")).status == 200
    assert (await browser.get("/admin/jobs/")).status == 404


async def test_an_app_of_another_kind_is_refused(drum):
    with pytest.raises(BadOption, match="app must be a FastAPI or Starlette app; in one of another framework"):
        drum.install(object())


@pytest.mark.parametrize("options", [{"path": "jobs"}, {"actuator": "/up/"}, {"role": "king"}])
async def test_a_bad_option_is_refused_when_installed(drum, options):
    with pytest.raises(BadOption):
        serve(drum, AUTH, **options)


async def test_a_missing_package_is_named_with_how_to_get_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "drumline.web.install")
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(DrumlineError, match=r"pip install 'drumline\[web\]'"):
        Drumline("memory://").asgi()
