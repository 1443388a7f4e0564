"""One trace from a request through enqueue to the run, in the exporter of the real SDK."""

import asyncio
import sys

import pytest
from fastapi import FastAPI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from drumline import BadSettings, Drumline, KeyTaken, Snooze
from drumline.tracing import trace_jobs
from tests.app import traced_tasks
from tests.support.waiting import eventually
from tests.web.browser import Browser

pytestmark = pytest.mark.asyncio


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter):
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    yield made
    made.shutdown()


@pytest.fixture
def drum(provider):
    made = Drumline("memory://")
    trace_jobs(made, provider)
    return made


def only(exporter, name):
    (span,) = [span for span in exporter.get_finished_spans() if span.name == name]
    return span


def of_trace(span):
    return span.context.trace_id


async def test_a_request_its_enqueue_and_the_run_are_one_trace(drum, provider, exporter):
    tracer = provider.get_tracer("shop")
    within = {}

    @drum.task(queue="mail")
    async def send_mail(user_id: int) -> None:
        with tracer.start_as_current_span("talk to the server"):
            within["coroutine"] = trace.get_current_span().get_span_context().trace_id

    @drum.task
    def write_file() -> None:
        within["thread"] = trace.get_current_span().get_span_context().trace_id

    app = FastAPI()

    @app.post("/orders")
    async def order() -> str:
        with tracer.start_as_current_span("POST /orders", kind=SpanKind.SERVER):
            job = await send_mail.enqueue(user_id=4711)
            await asyncio.to_thread(write_file.enqueue_sync)
        return str(job.id)

    job_id = (await Browser(app).post("/orders")).json
    await drum.run(drain=True)
    request, enqueue, run, inner = (
        only(exporter, name) for name in ("POST /orders", "enqueue send_mail", "run send_mail", "talk to the server")
    )
    assert {of_trace(span) for span in exporter.get_finished_spans()} == {of_trace(request)}
    assert enqueue.parent.span_id == request.context.span_id
    assert run.parent.span_id == enqueue.context.span_id
    assert inner.parent.span_id == run.context.span_id
    assert within == {"coroutine": of_trace(request), "thread": of_trace(request)}
    assert (enqueue.kind, run.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert dict(enqueue.attributes) == {
        "messaging.system": "drumline",
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "send",
        "messaging.destination.name": "mail",
        "messaging.message.id": job_id,
        "drumline.task": "send_mail",
    }
    assert dict(run.attributes) == {
        "messaging.system": "drumline",
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": "mail",
        "messaging.message.id": job_id,
        "drumline.task": "send_mail",
        "drumline.attempt": 1,
        "drumline.source": "manual",
    }


async def test_a_batch_is_one_span_and_all_its_runs_are_its_children(drum, exporter):
    @drum.task
    async def ring(n: int) -> None: ...

    await drum.enqueue_many([ring.call(n=n) for n in range(3)])
    await drum.run(drain=True)
    enqueue = only(exporter, "enqueue ring")
    runs = [span for span in exporter.get_finished_spans() if span.name == "run ring"]
    assert enqueue.attributes["messaging.batch.message_count"] == 3
    assert [span.parent.span_id for span in runs] == [enqueue.context.span_id] * 3


async def test_every_attempt_is_a_span_of_the_trace_and_tells_its_error_without_the_message(drum, exporter):
    @drum.task(max_attempts=2, backoff="1ms")
    async def call_bank(account: str) -> None:
        raise ValueError(f"no answer for {account}")

    await call_bank.enqueue(account="s3cr3t")
    await drum.run(drain=True)
    runs = [span for span in exporter.get_finished_spans() if span.name == "run call_bank"]
    assert [span.attributes["drumline.attempt"] for span in runs] == [1, 2]
    assert {of_trace(span) for span in runs} == {of_trace(only(exporter, "enqueue call_bank"))}
    for span in runs:
        assert (span.status.status_code, span.attributes["error.type"]) == (StatusCode.ERROR, "ValueError")
        (event,) = span.events
        assert "call_bank" in event.attributes["exception.stacktrace"]
    assert "s3cr3t" not in "".join(span.to_json() for span in exporter.get_finished_spans())


async def test_to_snooze_is_no_error(drum, exporter):
    @drum.task
    async def doze() -> None:
        raise Snooze("1h")

    await doze.enqueue()
    stop = asyncio.Event()
    working = asyncio.create_task(drum.run(until=stop))
    await eventually(lambda: any(span.name == "run doze" for span in exporter.get_finished_spans()))
    stop.set()
    await working
    span = only(exporter, "run doze")
    assert (span.status.status_code, span.attributes["drumline.ended"]) == (StatusCode.UNSET, "snoozed")


async def test_a_time_limit_is_an_error_of_that_name(drum, exporter):
    @drum.task(max_attempts=1, timeout="20ms")
    async def hang() -> None:
        await asyncio.Event().wait()

    await hang.enqueue()
    await drum.run(drain=True)
    assert only(exporter, "run hang").attributes["error.type"] == "timeout"


async def test_a_cancelled_job_is_no_error(drum, exporter):
    begun = asyncio.Event()

    @drum.task
    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    job = await hang.enqueue()
    stop = asyncio.Event()
    working = asyncio.create_task(drum.run(until=stop))
    await begun.wait()
    await job.cancel()
    await eventually(lambda: any(span.name == "run hang" for span in exporter.get_finished_spans()))
    stop.set()
    await working
    span = only(exporter, "run hang")
    assert (span.status.status_code, span.attributes["drumline.ended"]) == (StatusCode.UNSET, "cancelled")


async def test_an_enqueue_that_fails_is_an_error(drum, exporter):
    @drum.task
    async def ring() -> None: ...

    await ring.using(key="k").enqueue()
    with pytest.raises(KeyTaken):
        await ring.using(key="k", on_conflict="raise").enqueue()
    first, second = exporter.get_finished_spans()
    assert (first.status.status_code, second.attributes["error.type"]) == (StatusCode.UNSET, "KeyTaken")


async def test_a_task_in_a_child_process_goes_on_with_the_trace(monkeypatch, provider, exporter):
    drum = traced_tasks.drum
    monkeypatch.setattr(drum, "_around_enqueue", ())
    monkeypatch.setattr(drum, "_around_run", ())
    trace_jobs(drum, provider)
    job = await traced_tasks.look_around.enqueue()
    failed = await traced_tasks.fail_there.enqueue("s3cr3t")
    await drum.run(drain=True)
    run = only(exporter, "run look_around")
    assert await job.wait() == f"{of_trace(run):032x} {run.context.span_id:016x}"
    assert of_trace(run) == of_trace(only(exporter, "enqueue look_around"))
    assert only(exporter, "run fail_there").attributes["error.type"] == "LookupError"
    assert "s3cr3t" not in "".join(span.to_json() for span in exporter.get_finished_spans())
    await drum.jobs.discard(failed.id)


async def test_a_tick_begins_a_trace_of_its_own_with_all_that_comes_of_it(drum, exporter):
    ended = asyncio.Event()

    @drum.task
    async def after() -> None:
        ended.set()

    @drum.schedule(every="1d", run_on_startup=True)
    async def nightly() -> None:
        await after.enqueue()

    working = asyncio.create_task(drum.run(until=ended))
    await working
    run = only(exporter, "run nightly")
    assert run.parent is None
    assert (run.attributes["drumline.schedule"], run.attributes["drumline.source"]) == ("nightly", "scheduled")
    assert "drumline.tick" in run.attributes
    assert of_trace(only(exporter, "enqueue after")) == of_trace(only(exporter, "run after")) == of_trace(run)


async def test_a_trace_that_the_caller_names_is_kept(drum, exporter):
    @drum.task
    async def ring() -> None: ...

    theirs = f"00-{'a' * 32}-{'b' * 16}-01"
    await ring.using(meta={"traceparent": theirs}).enqueue()
    await drum.run(drain=True)
    assert of_trace(only(exporter, "run ring")) == int("a" * 32, 16)


async def test_without_a_provider_jobs_are_as_they_were():
    drum = Drumline("memory://")
    trace_jobs(drum)

    @drum.task
    async def ring() -> None: ...

    job = await ring.enqueue()
    await drum.run(drain=True)
    assert (await job.refresh()).info.meta == {}


async def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(BadSettings, match=r"pip install 'drumline\[otel\]'"):
        trace_jobs(Drumline("memory://"))
