"""The trace of a run, taken up in the child process in which its task is called."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["resume"]


def resume(carried: Mapping[str, str]) -> None:
    """Go on, in this context, with the trace that the worker carried over the border; nothing, if it carried none."""
    if not carried:
        return
    from opentelemetry.context import attach
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    attach(TraceContextTextMapPropagator().extract(carried))
