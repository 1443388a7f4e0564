"""What a worker that has nothing to do costs in so many seconds: its share of a core, and calls of the store."""

from benchmarks.peers.adapter import Adapter
from benchmarks.peers.calls import SETTLING, count_calls
from benchmarks.peers.probes import warm_up
from benchmarks.peers.worker import cpu_seconds, running


async def measure(adapter: Adapter, seconds: int) -> dict[str, float]:
    await adapter.lay_out()
    await adapter.open()
    with running(adapter.worker_command) as worker:
        await warm_up(adapter, worker)
        # The side that enqueues would count too.
        await adapter.close()
        before = cpu_seconds(worker)
        calls = await count_calls(seconds)
        spent = cpu_seconds(worker) - before
    found = {"at rest, CPU": 100 * spent / (SETTLING + seconds)}
    return found if calls is None else {**found, "at rest, calls": calls / seconds}
