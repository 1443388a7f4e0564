"""How soon a worker with nothing else to do starts each of so many single jobs; and the memory that it takes."""

from benchmarks.peers.adapter import Adapter
from benchmarks.peers.probes import count_extra_runs, probe, summarise, warm_up
from benchmarks.peers.worker import family, running


async def measure(adapter: Adapter, samples: int) -> dict[str, float]:
    await adapter.lay_out()
    await adapter.open()
    with running(adapter.worker_command) as worker:
        await warm_up(adapter, worker)
        memory = sum(process.memory_info().rss for process in family(worker))
        waits = await probe(adapter, worker, samples)
    await adapter.close()
    return {**summarise("pick-up", waits), "memory": memory / 2**20, "extra runs": count_extra_runs(samples)}
