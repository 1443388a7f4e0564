"""A program that is traced, with a task for a child process: a child finds it here by name."""

from opentelemetry import trace

from drumline import Drumline

drum = Drumline("memory://")


@drum.task(executor="process")
def look_around() -> str:
    """The trace and the span in which a task of a child process runs."""
    here = trace.get_current_span().get_span_context()
    return f"{here.trace_id:032x} {here.span_id:016x}"


@drum.task(executor="process", max_attempts=1)
def fail_there(word: str) -> None:
    raise LookupError(word)
