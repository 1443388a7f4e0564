"""The answers to an enqueue, whatever order the server gives its rows in."""

from typing import Any, cast

import pytest

from drumline.model.job import JobState
from drumline.stores.relational.produce import enqueue
from tests.support.build import new_job


class Backwards:
    """Ways of a server that adds jobs, and tells of them in an order of its own."""

    def __init__(self) -> None:
        self.sql = {"find_standing": "find_standing"}

    def take_keys(self, step, jobs):
        yield from ()
        return {}

    def add(self, step, jobs, place):
        yield from ()
        return {job.id: JobState.READY for job in reversed(jobs)}


class Step:
    now = None


def test_answers_stand_in_the_order_of_the_jobs():
    jobs = [new_job(key=f"k{number}") for number in range(5)]
    asking: Any = enqueue(cast("Any", Backwards()), cast("Any", Step()), jobs)
    next(asking)
    with pytest.raises(StopIteration) as ended:
        asking.send([])
    assert [made.id for made in ended.value.value] == [job.id for job in jobs]
