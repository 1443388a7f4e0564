"""The context of a claim: what its task may know, in whatever thread or process it runs."""

from __future__ import annotations

from typing import Any

from drumline.model.claim import Claim
from drumline.model.context import Context, Sink

__all__ = ["context_of"]


def context_of(claim: Claim, sink: Sink, state: Any) -> Context:
    """What the claim's task may know; `state` is what the app's lifespan yielded, `sink` takes its words."""
    return Context(
        job_id=claim.id,
        task=claim.task,
        queue=claim.queue,
        attempt=claim.attempt,
        max_attempts=claim.options.max_attempts,
        fence=claim.fence,
        tags=claim.tags,
        meta=claim.meta,
        source=claim.source,
        schedule=claim.schedule,
        tick=claim.tick,
        state=state,
        sink=sink,
    )
