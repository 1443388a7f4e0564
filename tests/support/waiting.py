"""Waiting for a condition, with a deadline: the only waiting that a test does."""

import asyncio
import threading
import time
from collections.abc import Callable

# How often a condition is looked at. Only a lower bound of how quick a test is, never part of what it asserts.
_LOOK_EVERY = 0.002


async def eventually(condition: Callable[[], object], deadline: float = 10.0) -> None:
    """Let the event loop run until the condition holds; fail when it does not within `deadline` seconds."""
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, f"not within {deadline} s: {condition}"
        await asyncio.sleep(_LOOK_EVERY)


def run_together(*works: Callable[[], object], deadline: float = 50.0) -> list[object]:
    """Run each work in a thread of its own, started at once; their results, or the first error."""
    gate = threading.Barrier(len(works))
    results: list[object] = [None] * len(works)
    errors: list[BaseException] = []

    def run(place: int, work: Callable[[], object]) -> None:
        try:
            gate.wait(deadline)
            results[place] = work()
        except BaseException as error:  # noqa: BLE001 - raised again in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=item, daemon=True) for item in enumerate(works)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + deadline
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))
        assert not thread.is_alive(), f"a thread did not end within {deadline} s"
    if errors:
        raise errors[0]
    return results
