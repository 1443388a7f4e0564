"""What a run came to: totals, and a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil

import msgspec

from drumline.chaos.check import Evidence, Kind, Violation, check, reclaim_lags
from drumline.chaos.ledger import What
from drumline.chaos.plan import CONNECTION, Deed

__all__ = ["Report", "Tale", "sum_up"]

# A job whose worker was lost is due again so long after the end of its lease, at the latest.
_SLOWEST = timedelta(seconds=1)
# Of each kind of violation so many are shown.
_EXAMPLES = 5
# After an outage the rescuers wait, for a store that was away must not look like a dead fleet; then they catch up.
_CATCH_UP = timedelta(seconds=8)

Span = tuple[datetime, datetime]


class Tale(msgspec.Struct, frozen=True, kw_only=True):
    """What was done in a run."""

    seed: int
    seconds: float
    lease: timedelta
    deeds: Mapping[Deed, int]
    zombies: int
    skewed: int
    # Batches of the producer that it had to send again.
    doubts: int
    # When the store was away for all, and when its server was killed.
    outages: Sequence[Span]
    crashes: Sequence[Span]
    # What was wrong with the processes themselves.
    exits: Sequence[Violation]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Totals, and what was broken."""

    tale: Tale
    jobs: int
    executions: int
    refused: int
    ticks: int
    rescues: int
    # Executions whose claim was forgotten by a server that was killed.
    vanished: int
    # From the end of the lease until the job was due again, in 99 of 100 cases; None without a case.
    reclaim_p99: timedelta | None
    violations: Sequence[Violation]

    @property
    def is_quick(self) -> bool:
        return self.reclaim_p99 is None or self.reclaim_p99 <= _SLOWEST

    @property
    def is_sound(self) -> bool:
        return not self.violations and self.is_quick

    def lines(self) -> Iterator[str]:
        """The table, the verdict, and some of what was broken."""
        for name, value in self._figures():
            yield f"  {name:<34}{value:>14}"
        for kind in Kind:
            of_kind = [violation for violation in self.violations if violation.kind is kind]
            yield from (f"  {violation}" for violation in of_kind[:_EXAMPLES])
        yield f"verdict: {self.verdict} (seed {self.tale.seed}, {self.tale.seconds:g} s)"

    @property
    def verdict(self) -> str:
        if self.violations:
            kinds = Counter(violation.kind for violation in self.violations)
            return "BROKEN: " + ", ".join(f"{number} × {kind}" for kind, number in kinds.items())
        return "every promise held" if self.is_quick else "SLOW: nothing was lost or doubled, but rescue took too long"

    def _figures(self) -> Iterator[tuple[str, str]]:
        tale, kinds = self.tale, Counter(violation.kind for violation in self.violations)
        yield "jobs", f"{self.jobs:,}"
        yield "executions", f"{self.executions:,}"
        yield "ticks", f"{self.ticks:,}"
        yield "SIGKILLs", f"{tale.deeds.get(Deed.KILL, 0):,}"
        yield "SIGTERMs", f"{tale.deeds.get(Deed.TERMINATE, 0):,}"
        yield "zombie wake-ups", f"{tale.zombies:,}"
        yield "server restarts", f"{tale.deeds.get(Deed.RESTART, 0):,}"
        yield "connections ended by the server", f"{tale.deeds.get(Deed.DISCONNECT, 0):,}"
        yield "connection faults", f"{sum(tale.deeds.get(deed, 0) for deed in CONNECTION):,}"
        yield "workers with a wrong clock", f"{tale.skewed:,}"
        yield "enqueues sent again", f"{tale.doubts:,}"
        yield "claims lost and rescued", f"{self.rescues:,}"
        yield "claims lost by a killed server", f"{self.vanished:,}"
        yield "late results refused", f"{self.refused:,}"
        for kind in Kind:
            yield kind, f"{kinds[kind]:,}"
        lag = "–" if self.reclaim_p99 is None else f"lease + {self.reclaim_p99.total_seconds():.2f} s"
        yield "reclaim p99 (≤ lease + 1 s)", lag


def sum_up(tale: Tale, evidence: Evidence) -> Report:
    """Judge a run that has come to rest."""
    evidence = msgspec.structs.replace(evidence, crashes=tale.crashes)
    attempts = {(job.id, one.fence) for job in evidence.jobs for one in job.attempts}
    begun = {(line.job, line.fence) for line in evidence.lines if line.what is What.BEGAN}
    lost = {(job.id, one.fence) for job in evidence.jobs for one in job.attempts if one.ended == "lost"}
    returned = {(line.job, line.fence) for line in evidence.lines if line.what is What.RETURNED}
    lags = sorted(
        again - lease_end
        for lease_end, again in reclaim_lags(evidence.jobs)
        if not any(_touches(outage, lease_end, again, tale.lease) for outage in tale.outages)
    )
    return Report(
        tale=tale,
        jobs=len(evidence.jobs),
        executions=sum(line.what is What.BEGAN for line in evidence.lines),
        refused=len(lost & returned),
        ticks=sum(tick.job_id is not None for tick in evidence.ticks),
        rescues=len(lost),
        vanished=sum(evidence.has_vanished(fence) for _, fence in begun - attempts),
        reclaim_p99=lags[ceil(len(lags) * 0.99) - 1] if lags else None,
        violations=[*check(evidence), *tale.exits],
    )


def _touches(outage: Span, lease_end: datetime, again: datetime, lease: timedelta) -> bool:
    """Whether the store was away while the claim was to be prolonged or rescued, or shortly before."""
    began, ended = outage
    return began <= again and lease_end - lease <= ended + _CATCH_UP
