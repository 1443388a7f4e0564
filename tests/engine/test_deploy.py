"""A rolling deploy: jobs of a newer program on workers of an older one, and the other way round."""

import pytest

from drumline.policy.verdict import MOST_RELEASES
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio


async def older(order: int) -> int:
    return order


async def newer(order: dict[str, int], note: str = "") -> int:
    return order["id"]


def enqueue_newer(kit, **arguments):
    """A job of the newer program, whose task the worker of this process knows in its older form."""
    kit.task(newer, name="ship", max_attempts=2)
    job_id = kit.enqueue("ship", **arguments)
    kit.task(older, name="ship")
    return job_id


async def test_a_newer_shape_is_left_for_others_a_bounded_number_of_times_and_then_fails_clearly(kit):
    job_id = enqueue_newer(kit, order={"id": 7})
    async with kit.working():
        await kit.pass_time(lambda: kit.state(job_id) == "dead", by=5)
    job = kit.job(job_id)
    assert kit.ends(job_id) == ["released"] * MOST_RELEASES + ["failed"]
    assert job.last_error is not None
    assert "order: expected int, got" in job.last_error


async def test_a_job_that_was_left_is_taken_by_a_newer_worker_and_has_spent_no_attempt(kit):
    job_id = enqueue_newer(kit, order={"id": 7})
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "delayed")
    kit.task(newer, name="ship", max_attempts=2)
    async with kit.working():
        await kit.pass_time(lambda: kit.state(job_id) == "done", by=5)
    assert (kit.job(job_id).attempt, kit.ends(job_id)) == (1, ["released", "done"])
    assert kit.job(job_id).result == b"7"


async def test_an_argument_that_only_the_newer_program_has_is_passed_over(kit):
    async def plain(order: int, note: str = "") -> int:
        return order

    kit.task(plain, name="ship")
    job_id = kit.enqueue("ship", order=7, note="new")
    kit.task(older, name="ship")
    async with kit.working():
        await eventually(lambda: kit.state(job_id) == "done")
    assert (kit.job(job_id).result, kit.ends(job_id)) == (b"7", ["done"])
