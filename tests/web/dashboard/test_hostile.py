"""Hostile texts are texts, on every page and every store."""

import re

import pytest

from tests.support.hostile import NAME, SCRIPT, fill
from tests.web.dashboard.visitor import Seen

pytestmark = pytest.mark.asyncio

# What would steer a page or a terminal, but for the ends of lines.
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def check(seen: Seen) -> None:
    assert seen.status == 200
    assert "<script>window" not in seen.answer.text
    assert "img" not in seen.tags
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert not STEERING.search(seen.answer.text)


async def test_hostile_texts_render_as_text_on_every_page(drum, visitor):
    job = await fill(await drum.store())
    for path in (
        "/",
        "/jobs",
        "/jobs?state=dead",
        "/schedules",
        "/dead",
        "/queues",
        "/workers",
        "/audit",
        f"/jobs/{job}",
    ):
        seen = await visitor.look(path)
        check(seen)
        assert SCRIPT in seen, path
    check(await visitor.look("/schedules/tock"))


async def test_hostile_texts_render_as_text_in_questions_and_answers(drum, admin, visitor):
    await fill(await drum.store())
    for action in ("pause-queue", "resume-queue", "pause-schedule", "resume-schedule", "run-schedule"):
        name = NAME if "queue" in action else "tock"
        check(await visitor.look(f"/do/{action}", name=name, back="/queues"))
    told = await visitor.send("resume-queue", ("name", NAME), back="/queues")
    cookie = told.headers["set-cookie"].partition(";")[0]
    seen = Seen(await admin.get("/admin/jobs/queues", cookie=cookie))
    check(seen)
    assert f"Queue {SCRIPT}" in seen


async def test_a_hostile_filter_renders_as_text(drum, visitor):
    for name in ("task", "queue", "tag", "key", "schedule", "error"):
        check(await visitor.look("/jobs", **{name: NAME}))
    check(await visitor.look("/dead", task=NAME))
