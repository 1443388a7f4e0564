"""What the pages of one program share: its Drumline, its health, and how often people may act."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from drumline.client import Client
from drumline.clock import Clock, SystemClock
from drumline.schedules import Schedules
from drumline.web.dashboard.glance import Glance
from drumline.web.dashboard.quarters import Quarters
from drumline.web.health import Pulse
from drumline.web.metrics import open_metrics
from drumline.web.pace import Pace
from drumline.web.sampler import Sampler

if TYPE_CHECKING:
    from drumline.app import Drumline

__all__ = ["Owner", "Web"]

# Which end user asks, as the program itself tells; plain or async.
Owner = Callable[[Request], Any]


class Web:
    """One program's pages."""

    def __init__(self, drum: Drumline, *, owner: Owner | None = None, clock: Clock | None = None) -> None:
        self.drum = drum
        self.owner = owner
        self.clock = clock or SystemClock()
        self.pace = Pace(self.clock)
        self.pulse = Pulse(self)
        self.metrics = open_metrics(drum.events)
        # Whether a worker belongs to this process, so that it has not started before that has.
        self.expects_worker = False
        self.is_leaving = False
        self.sampler = Sampler(self)
        self.glance = Glance(self)
        self.quarters = Quarters(self)

    def client(self, who: str) -> Client:
        """A client that acts in this person's name."""
        return self.drum.client(via="http", who=who)

    def schedules(self, who: str) -> Schedules:
        """The fleet's schedules, with verbs in this person's name."""
        return self.drum.schedules_through(self.client(who))

    def begin_to_leave(self) -> None:
        """The program is about to leave: say so, and send watchers home."""
        self.is_leaving = True
        self.sampler.dismiss()

    async def close(self) -> None:
        """End what goes on by itself."""
        self.begin_to_leave()
        await self.sampler.close()
