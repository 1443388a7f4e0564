"""Whether a series is flat: a pure function of what was measured.

    ╭── warming up ──╮╭── before ──╮╭── after ──╮
    0               1/3           2/3           1

Stores forget once a minute, so each measure goes up and down: what may not grow is the highest of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# By how much the highest value of the last third may exceed that of the third before.
MOST_GROWTH = 0.1


@dataclass(frozen=True, slots=True)
class Trend:
    """One measure: the highest value in the second third of the time, and in the last."""

    name: str
    before: float
    after: float
    # A difference as small as this means nothing.
    slack: float

    @property
    def is_flat(self) -> bool:
        return self.after <= self.before * (1 + MOST_GROWTH) + self.slack

    def __str__(self) -> str:
        verdict = "flat" if self.is_flat else "GROWS"
        return f"  {self.name:<24}{self.before:>16,.1f}{self.after:>16,.1f}   {verdict}"


def judge(samples: Sequence[Mapping[str, float]], slacks: Mapping[str, float]) -> list[Trend]:
    """How each measure has gone."""
    third = len(samples) // 3
    before, after = samples[third : 2 * third], samples[2 * third :]
    return [
        Trend(name, max(one[name] for one in before), max(one[name] for one in after), slack)
        for name, slack in slacks.items()
        if name in samples[0]
    ]
