"""OpenTelemetry: one trace from whoever enqueues, through the job, to all that it does. Needs the extra `otel`.

The span of an enqueue is a producer's, and its id goes with the job, in its metadata. The span of each attempt is a
consumer's, and its child. Attributes are those of the messaging conventions; no argument, result or message of an
error is among them, since any of these may hold a secret.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Generator, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from drumline.engine.childrun import EndedInChild
from drumline.engine.execution import Reason
from drumline.errors import BadSettings, Snooze
from drumline.middleware import AroundEnqueue, AroundRun, Run, carried
from drumline.model.context import Context
from drumline.model.job import Enqueued, NewJob

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider

__all__ = ["trace_jobs"]

# The W3C's headers, which stand in a job's metadata under their own names.
_CARRIED = ("traceparent", "tracestate")


class Traceable(Protocol):
    """What can be traced: a Drumline."""

    def around_enqueue(self, middleware: AroundEnqueue) -> AroundEnqueue: ...

    def around_run(self, middleware: AroundRun) -> AroundRun: ...


def trace_jobs(drum: Traceable, tracer_provider: TracerProvider | None = None) -> None:
    """Have a span around every enqueue and every attempt of this program; without a provider, the global one's.

    Call it once. Where no provider is set it does nothing but hand on a trace that it is given.
    """
    try:
        from opentelemetry.trace import get_tracer
    except ImportError as error:
        raise BadSettings("traces need OpenTelemetry: pip install 'drumline[otel]'") from error
    tracing = _Tracing(get_tracer("drumline", version("drumline"), tracer_provider))
    drum.around_enqueue(tracing.around_enqueue)
    drum.around_run(tracing.around_run)


class _Tracing:
    def __init__(self, tracer: Tracer) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = tracer
        self._propagator = TraceContextTextMapPropagator()

    def around_enqueue(self, jobs: list[NewJob]) -> Generator[list[NewJob], list[Enqueued], None]:
        from opentelemetry.trace import SpanKind, set_span_in_context

        span = self._tracer.start_span(_name_of("enqueue", jobs), kind=SpanKind.PRODUCER, attributes=_describe(jobs))
        headers: dict[str, str] = {}
        self._propagator.inject(headers, set_span_in_context(span))
        try:
            answer = yield [_with_headers(job, headers) for job in jobs] if headers else jobs
        except Exception as error:
            _record(span, error)
            raise
        else:
            if len(answer) == 1:
                # Under a unique key it may be another than was asked for.
                span.set_attribute("messaging.message.id", answer[0].id)
        finally:
            span.end()

    async def around_run(self, context: Context, run: Run) -> Any:
        from opentelemetry.context import Context as TraceContext
        from opentelemetry.context import attach, detach
        from opentelemetry.trace import SpanKind, set_span_in_context

        # Of the job alone, and not of what else this process is in the midst of.
        parent = self._propagator.extract(_headers_of(context.meta), TraceContext())
        span = self._tracer.start_span(
            f"run {context.task}", parent, kind=SpanKind.CONSUMER, attributes=_describe_run(context)
        )
        if not span.get_span_context().is_valid:
            return await run()
        here = set_span_in_context(span, parent)
        headers: dict[str, str] = {}
        self._propagator.inject(headers, here)
        token, of_child = attach(here), carried.set(headers)
        try:
            return await run()
        except BaseException as error:
            _record_run(span, context, error)
            raise
        finally:
            carried.reset(of_child)
            detach(token)
            span.end()


def _name_of(verb: str, jobs: Sequence[NewJob]) -> str:
    tasks = {job.task for job in jobs}
    return f"{verb} {tasks.pop()}" if len(tasks) == 1 else verb


def _describe(jobs: Sequence[NewJob]) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "messaging.system": "drumline",
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "send",
    }
    for name, values in (
        ("messaging.destination.name", {job.options.queue for job in jobs}),
        ("drumline.task", {job.task for job in jobs}),
    ):
        if len(values) == 1:
            attributes[name] = values.pop()
    if len(jobs) != 1:
        attributes["messaging.batch.message_count"] = len(jobs)
    return attributes


def _describe_run(context: Context) -> dict[str, Any]:
    attributes = {
        "messaging.system": "drumline",
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": context.queue,
        "messaging.message.id": context.job_id,
        "drumline.task": context.task,
        "drumline.attempt": context.attempt,
        "drumline.source": context.source.value,
    }
    if context.schedule is not None:
        attributes["drumline.schedule"] = context.schedule
    if context.tick is not None:
        attributes["drumline.tick"] = context.tick.isoformat()
    return attributes


def _headers_of(meta: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name in _CARRIED if isinstance(value := meta.get(name), str)}


def _with_headers(job: NewJob, headers: Mapping[str, str]) -> NewJob:
    # Whoever gives a trace of their own means it.
    return job if "traceparent" in job.meta else msgspec.structs.replace(job, meta={**job.meta, **headers})


def _record_run(span: Span, context: Context, error: BaseException) -> None:
    is_interrupted = isinstance(error, asyncio.CancelledError)
    if isinstance(error, Snooze):
        span.set_attribute("drumline.ended", "snoozed")
    elif is_interrupted and error.args != (Reason.TIMEOUT.value,):
        span.set_attribute("drumline.ended", "cancelled" if context.cancelled else "released")
    else:
        _record(span, error)


def _record(span: Span, error: BaseException) -> None:
    """What kind of error it was, and where; not its message."""
    from opentelemetry.trace import Status, StatusCode

    kind = _kind_of(error)
    where = "" if isinstance(error, EndedInChild) else "".join(traceback.format_tb(error.__traceback__))
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, kind))
    span.add_event("exception", {"exception.type": kind, "exception.stacktrace": where})


def _kind_of(error: BaseException) -> str:
    if isinstance(error, EndedInChild):
        return error.ending.failure.type
    return Reason.TIMEOUT.value if isinstance(error, asyncio.CancelledError) else type(error).__qualname__
