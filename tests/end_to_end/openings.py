"""The program of the tests of starts: what runs when a fleet starts, and what when a replica does."""

import os

from drumline import Drumline
from tests.end_to_end.band import note

drum = Drumline()


@drum.schedule(every="7d", run_on_startup=True)
async def opening() -> None:
    note("opening", os.getpid())


@drum.schedule(every="7d", run_on_startup=True, coordination="per_replica")
async def tuning() -> None:
    note("tuning", os.getpid())
