"""Doubt: a claim whose reply was lost may have been executed. The store knows."""

from __future__ import annotations

import asyncio
import logging

from drumline.engine.execution import Executions
from drumline.model.claim import Claim
from drumline.model.replica import ReplicaInfo
from drumline.stores.base import Store

__all__ = ["find_in_doubt"]

logger = logging.getLogger("drumline.engine")


async def find_in_doubt(store: Store, info: ReplicaInfo, executions: Executions, patience: float) -> list[Claim]:
    """The claims that the store holds for this replica and the replica does not know of; none if it cannot be asked.

    Only for a replica that claims no more: of one that does, a reply may merely be on its way.
    """
    try:
        async with asyncio.timeout(patience):
            beat = await store.beat(info, [execution.ref for execution in executions])
    except Exception as error:  # noqa: BLE001 - the leases will pass, and the fleet finds them a little later
        logger.warning("could not ask for claims whose reply was lost: %r", error)
        return []
    return [claim for claim in beat.unknown if executions.get(claim.ref) is None]
