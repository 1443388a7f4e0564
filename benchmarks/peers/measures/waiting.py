"""What it costs to claim and finish a job while a thousand, a hundred thousand, a million wait, at most so many.

Ours only, and the store alone: batches of 100, and as many jobs enqueued again outside of what is timed, so that the
number that waits stays.
"""

import statistics
import time

from benchmarks.outcomes import succeed
from benchmarks.peers.adapter import Adapter
from benchmarks.peers.adapters.ours import beat, drum
from benchmarks.peers.depths import DEPTHS, name_depth
from benchmarks.peers.place import settle_store
from drumline.clock import fresh_id
from drumline.model.claim import ANY_QUEUE, Share
from drumline.stores.base import Store

BATCH = 100
TURNS = 500
WARM_UP = 10
REPLICA = "bench:00000000"
_CHUNK = 10_000


async def measure(adapter: Adapter, most: int) -> dict[str, float]:
    """Microseconds a job, by the number that waits."""
    await adapter.lay_out()
    await adapter.open()
    store, found, waiting = await drum.store(), {}, 0
    for depth in (depth for depth in DEPTHS if depth <= most):
        for place in range(waiting, depth, _CHUNK):
            await adapter.enqueue_many(range(place, min(place + _CHUNK, depth)))
        waiting = depth
        settle_store()
        seconds = [await _turn(store, adapter) for _ in range(WARM_UP + TURNS)]
        # Not the mean: the server may begin in the midst to tidy up after those that were enqueued.
        found[name_depth(depth)] = statistics.median(seconds[WARM_UP:]) / BATCH * 1e6
    await adapter.close()
    return found


async def _turn(store: Store, adapter: Adapter) -> float:
    """The seconds that a batch took."""
    began = time.perf_counter()
    claimed = await store.claim(REPLICA, [Share(ANY_QUEUE, BATCH)], BATCH, [beat.name], fresh_id())
    finished = await store.finish([succeed(claim, REPLICA) for claim in claimed.claims])
    took = time.perf_counter() - began
    assert len(finished) == BATCH
    assert all(finished)
    await adapter.enqueue_many(range(BATCH))
    return took
