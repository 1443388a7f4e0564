from typing import Annotated

import pytest
from fastapi import APIRouter, BackgroundTasks, Depends, FastAPI
from fastapi.responses import StreamingResponse
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.background import BackgroundTasks as StarletteBackgroundTasks
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from drumline import BadArgument, Tasks
from drumline.errors import StoreUnreachable
from tests.web.browser import Browser
from tests.web.shop import AUTH

pytestmark = pytest.mark.asyncio


@pytest.fixture
def ran() -> list[str]:
    return []


def make_direct_routes(drum) -> APIRouter:
    """Handlers that enqueue by themselves."""
    mail = drum.find_task("send_mail")
    router = APIRouter()

    @router.post("/direct/{order}")
    async def direct(order: int) -> None:
        await mail.enqueue(order)

    @router.post("/blocking/{order}")
    def blocking(order: int) -> None:
        mail.enqueue_sync(order)

    @router.post("/chosen")
    async def chosen(tasks: Annotated[Tasks, Depends(drum.tasks)]) -> None:
        tasks.add_task(mail.using(origin="shop"), 7)
        await mail.using(origin="shop").enqueue(8)

    return router


@pytest.fixture
def app(drum, ran) -> FastAPI:
    """A program that uses both ways."""
    mail = drum.find_task("send_mail")
    app = FastAPI()
    router = APIRouter(prefix="/v1")

    def note(word: str) -> None:
        ran.append(word)

    @app.post("/orders/{order}")
    async def order(order: int, background_tasks: BackgroundTasks) -> dict[str, int]:
        background_tasks.add_task(note, "before")
        background_tasks.add_task(mail, order, subject="Thanks")
        background_tasks.add_task(mail.using(delay="1h"), order)
        background_tasks.add_task(note, "after")
        return {"order": order}

    @router.post("/plain")
    def plain(background_tasks: BackgroundTasks) -> None:
        background_tasks.add_task(mail, 7)

    @app.post("/depends")
    async def depends(tasks: Annotated[Tasks, Depends(drum.tasks)]) -> dict[str, str | None]:
        tasks.add_task(note, "a function")
        return {"id": tasks.add_task(mail, user_id=7)}

    @app.post("/stream")
    async def stream(background_tasks: BackgroundTasks) -> StreamingResponse:
        background_tasks.add_task(mail, 7)
        return StreamingResponse(iter(["a", "b"]), background=background_tasks)

    @app.post("/wrong")
    async def wrong(background_tasks: BackgroundTasks) -> None:
        background_tasks.add_task(mail, "seven")

    @app.post("/raises")
    async def raises(background_tasks: BackgroundTasks) -> None:
        background_tasks.add_task(mail, 7)
        raise StoreUnreachable

    app.include_router(router)
    app.include_router(make_direct_routes(drum))

    @app.middleware("http")
    async def pass_on(request, call_next):
        return await call_next(request)

    drum.install(app, auth=AUTH, role=None)
    return app


async def test_entries_that_are_tasks_become_jobs_and_the_others_run_as_before(drum, app, ran):
    answer = await Browser(app).post("/orders/5")
    assert (answer.status, answer.json, ran) == (200, {"order": 5}, ["before", "after"])
    jobs = [handle.info async for handle in drum.jobs.find(task="send_mail")]
    assert sorted(job.state for job in jobs) == ["delayed", "ready"]
    assert {job.origin for job in jobs} == {"POST /orders/{order}"}
    assert {bytes(job.args) for job in jobs} == {b'{"user_id":5,"subject":"Thanks"}', b'{"user_id":5}'}


async def test_they_are_stored_in_one_batch_before_the_first_byte(drum, app, monkeypatch):
    told = []
    enqueue_many = drum.enqueue_many

    async def watch(calls):
        calls = list(calls)
        told.append(len(calls))
        return await enqueue_many(calls)

    monkeypatch.setattr(drum, "enqueue_many", watch)
    scope_app = app

    async def spying(scope, receive, send):
        async def spy(message):
            told.append(message["type"])
            await send(message)

        await scope_app(scope, receive, spy)

    await Browser(spying).post("/orders/5")
    assert told[:2] == [2, "http.response.start"]


@pytest.mark.parametrize("path", ["/v1/plain", "/stream", "/depends"])
async def test_it_works_for_every_kind_of_handler(drum, app, path):
    answer = await Browser(app).post(path)
    assert answer.status == 200, answer.text
    assert (await drum.counts()).ready == 1


@pytest.mark.parametrize(
    ("path", "origin"),
    [
        ("/v1/plain", "POST /v1/plain"),
        ("/stream", "POST /stream"),
        ("/depends", "POST /depends"),
        ("/direct/5", "POST /direct/{order}"),
        ("/blocking/5", "POST /blocking/{order}"),
        ("/chosen", "shop"),
    ],
)
async def test_the_origin_is_the_route_unless_the_caller_chose_one(drum, app, path, origin):
    await Browser(app).post(path)
    assert {handle.info.origin async for handle in drum.jobs.find()} == {origin}


async def test_what_is_enqueued_outside_a_request_has_no_route(drum, app):
    await Browser(app).post("/direct/5")
    job = await drum.find_task("send_mail").enqueue(7)
    assert (await job.refresh()).info.origin is None


async def test_the_dependency_tells_the_id_and_runs_plain_functions_behind(drum, app, ran):
    answer = await Browser(app).post("/depends")
    job = await drum.jobs.get(answer.json["id"])
    assert (job.info.task, ran) == ("send_mail", ["a function"])


async def test_an_id_that_was_told_stays_whatever_else_the_request_adds(drum):
    mail = drum.find_task("send_mail")
    app = FastAPI()
    drum.install(app, auth=AUTH, role=None)

    @app.post("/")
    async def both(tasks: Annotated[Tasks, Depends(drum.tasks)], background_tasks: BackgroundTasks) -> str:
        background_tasks.add_task(mail, 1)
        job_id: str = tasks.add_task(mail, 2)
        return job_id

    answer = await Browser(app).post("/")
    assert b'"user_id":2' in (await drum.jobs.get(answer.json)).info.args


async def test_without_install_the_dependency_enqueues_behind_the_response(drum):
    app = FastAPI()

    @app.post("/")
    async def depends(tasks: Annotated[Tasks, Depends(drum.tasks)]) -> str:
        job_id: str = tasks.add_task(drum.find_task("send_mail"), user_id=7)
        return job_id

    answer = await Browser(app).post("/")
    assert (await drum.jobs.get(answer.json)).state == "ready"


async def test_a_store_that_is_out_of_reach_is_503_and_nothing_else_runs(drum, app, ran, monkeypatch, caplog):
    async def refuse(calls):
        raise StoreUnreachable

    monkeypatch.setattr(drum, "enqueue_many", refuse)
    answer = await Browser(app).post("/orders/5")
    assert (answer.status, answer.headers["retry-after"], ran) == (503, "1", [])
    # The route, for its path may hold what is nobody's business.
    assert ("POST /orders/{order}: not enqueued" in caplog.text, "/orders/5" in caplog.text) == (True, False)


async def test_an_argument_that_does_not_fit_is_the_programs_own_error(drum, app):
    with pytest.raises(BadArgument, match="user_id"):
        await Browser(app).post("/wrong")
    assert (await drum.counts()).unfinished == 0


async def test_a_handler_that_fails_enqueues_nothing(drum, app):
    with pytest.raises(StoreUnreachable):
        await Browser(app).post("/raises")
    assert (await drum.counts()).unfinished == 0


async def test_starlette_works_too_also_in_a_mounted_app(drum):
    mail = drum.find_task("send_mail")

    async def one(request):
        return JSONResponse({}, background=BackgroundTask(mail, 7))

    async def many(request):
        tasks = StarletteBackgroundTasks()
        tasks.add_task(mail, 7)
        return JSONResponse({}, background=tasks)

    inner = Starlette(routes=[Route("/many", many)])
    app = Starlette(routes=[Route("/one", one), Mount("/inner", inner)])
    app.add_middleware(BaseHTTPMiddleware, dispatch=lambda request, call_next: call_next(request))
    drum.install(app, auth=AUTH, role=None)
    assert [(await Browser(app).get(path)).status for path in ("/one", "/inner/many")] == [200, 200]
    assert (await drum.counts()).ready == 2
