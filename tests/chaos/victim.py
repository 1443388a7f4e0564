"""A program that dies where its environment tells it: it enqueues, works until nothing is left, and leaves."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from drumline import Drumline
from drumline.chaos.ledger import Ledger
from drumline.chaos.program import Tasks, declare
from drumline.clock import fresh_id
from drumline.task import Call

FOLDER = "DRUMLINE_TEST_FOLDER"
LEASE = timedelta(milliseconds=600)
# Until a job is due that keeps the program at work: long enough for a tick to come meanwhile.
LATER = 1.1


def calls_of(tasks: Tasks) -> list[Call]:
    """Something of everything."""
    return [
        *(tasks.quick.using(id=fresh_id()).call() for _ in range(9)),
        tasks.quick.using(id=fresh_id(), delay=LATER).call(),
        tasks.slow.using(id=fresh_id()).call(0.2),
        tasks.grinding.using(id=fresh_id()).call(0.1),
        tasks.stumbling.using(id=fresh_id()).call(1),
        tasks.hopeless.using(id=fresh_id()).call(),
    ]


def enqueue(drum: Drumline, tasks: Tasks, folder: Path) -> None:
    """Enqueue, and write down what was accepted."""
    handles = drum.enqueue_many_sync(calls_of(tasks))
    with (folder / "accepted").open("a") as accepted:
        accepted.writelines(f"{handle.id}\n" for handle in handles)


def main() -> None:
    folder = Path(os.environ[FOLDER])
    drum = Drumline()
    tasks = declare(drum, Ledger(folder / "ledger"), LEASE)
    enqueue(drum, tasks, folder)
    asyncio.run(drum.run(concurrency=5, drain=True))


if __name__ == "__main__":
    main()
