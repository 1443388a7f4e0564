"""From the figures of every round to medians, and to ratios of ours to bare loops and peers. Pure."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.peers.depths import DEPTHS, name_depth

# What one round found, by the name of the measure; a measure that a system does not have is not there.
Figures: TypeAlias = Mapping[str, float]
# The rounds of each system, ours first.
Found: TypeAlias = Mapping[str, Sequence[Figures]]


@dataclass(frozen=True, slots=True)
class Measure:
    """Something measured: its unit, how many digits are worth showing, and which of two figures is the better one."""

    name: str
    unit: str
    digits: int
    better: Callable[[float, float], float]

    @property
    def title(self) -> str:
        return f"{self.name}, {self.unit}"


DRAIN = Measure("drain", "jobs/s", 0, max)
MEASURES = (
    Measure("one by one", "jobs/s", 0, max),
    Measure("100 callers", "jobs/s", 0, max),
    Measure("bulk", "jobs/s", 0, max),
    DRAIN,
    Measure("drain, CPU", "µs/job", 0, min),
    Measure("pick-up p50", "ms", 1, min),
    Measure("pick-up p99", "ms", 1, min),
    Measure("half load p50", "ms", 1, min),
    Measure("half load p99", "ms", 1, min),
    Measure("stream", "jobs/s", 0, max),
    Measure("memory", "MB", 0, min),
    # Jobs that were run again although nothing had failed: they count once in every rate.
    Measure("extra runs", "jobs", 0, min),
)
# What only ours is asked.
OUR_MEASURES = (
    Measure("schedules p50", "ms", 1, min),
    Measure("schedules p99", "ms", 1, min),
    *(Measure(name_depth(depth), "µs/job", 1, min) for depth in DEPTHS),
    Measure("at rest, calls", "/s", 2, min),
    Measure("at rest, CPU", "% of a core", 2, min),
)
# One of ours by another.
GAINS = (("100 callers", "one by one"), *((name_depth(depth), name_depth(DEPTHS[0])) for depth in DEPTHS[1:]))
NONE = "–"


def find_best(found: Found, names: Sequence[str], measure: Measure) -> str | None:
    """Whose median is the best of these systems; None where none of them has the measure."""
    medians = {name: median for name in names if (median := find_median(found[name], measure)) is not None}
    if not medians:
        return None
    best = measure.better(*medians.values()) if len(medians) > 1 else next(iter(medians.values()))
    return next(name for name, median in medians.items() if median == best)


def find_median(rounds: Sequence[Figures], measure: Measure) -> float | None:
    figures = [figures[measure.name] for figures in rounds if measure.name in figures]
    return statistics.median(figures) if figures else None


def find_ratio(ours: Sequence[Figures], theirs: Sequence[Figures], measure: Measure) -> float | None:
    """The median over rounds of ours by theirs: a slow minute met both of a pair."""
    name = measure.name
    # A drain of few jobs may take less CPU than the system can count: then there is no ratio.
    pairs = zip(ours, theirs, strict=True)
    ratios = [our[name] / their[name] for our, their in pairs if name in our and their.get(name)]
    return statistics.median(ratios) if ratios else None


def find_gain(rounds: Sequence[Figures], one: str, other: str) -> float | None:
    """The median over rounds of one measure by another of the same system."""
    gains = [figures[one] / figures[other] for figures in rounds if one in figures and other in figures]
    return statistics.median(gains) if gains else None


def show_figures(rounds: Sequence[Figures], measure: Measure) -> str:
    """The median, and the least and the most of all rounds."""
    figures = [figures[measure.name] for figures in rounds if measure.name in figures]
    if not figures:
        return NONE
    middle, least, most = (
        f"{figure:,.{measure.digits}f}" for figure in (statistics.median(figures), min(figures), max(figures))
    )
    return middle if len(figures) == 1 else f"{middle} [{least}..{most}]"


def show_ratio(ratio: float | None) -> str:
    if ratio is None:
        return NONE
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def make_figures(found: Found, names: Sequence[str], measures: Sequence[Measure]) -> list[list[str]]:
    """A table of titles and of the figures of each of these systems; a measure that none of them has is left out."""
    had = find_had(found, names, measures)
    return [
        ["", *(measure.title for measure in had)],
        *([name, *(show_figures(found[name], measure) for measure in had)] for name in names),
    ]


def make_gains(found: Found, ours: Sequence[str]) -> list[list[str]]:
    """A table of what one measure of ours is by another of the same; what none of ours has is left out."""
    had = [pair for pair in GAINS if any(find_gain(found[name], *pair) is not None for name in ours)]
    return [
        ["", *(f"{one} ÷ {other}" for one, other in had)],
        *([name, *(show_ratio(find_gain(found[name], one, other)) for one, other in had)] for name in ours),
    ]


def make_rows(found: Found, ours: str, bare: Mapping[str, str], peers: Sequence[str]) -> list[list[str]]:
    """The table: titles, the figures of each system, then ours by the best peer, by the bare loops and by each peer.

    Each bare loop names the setting of ours that it is compared with.
    """
    rows = make_figures(found, list(found), MEASURES)
    had = find_had(found, list(found), MEASURES)
    if peers:
        rows.append([f"{ours} ÷ best peer", *(_show_best(found, ours, peers, measure) for measure in had)])
    for other, beside in {**bare, **dict.fromkeys(peers, ours)}.items():
        ratios = [find_ratio(found[beside], found[other], measure) for measure in had]
        rows.append([f"{beside} ÷ {other}", *(show_ratio(ratio) for ratio in ratios)])
    return rows


def find_had(found: Found, names: Sequence[str], measures: Sequence[Measure]) -> list[Measure]:
    """The measures that at least one of these systems has."""
    return [measure for measure in measures if any(find_median(found[name], measure) is not None for name in names)]


def has_columns(rows: Sequence[Sequence[str]]) -> bool:
    """Whether a table tells more than names."""
    return len(rows[0]) > 1


def _show_best(found: Found, ours: str, peers: Sequence[str], measure: Measure) -> str:
    best = find_best(found, peers, measure)
    if best is None:
        return NONE
    ratio = find_ratio(found[ours], found[best], measure)
    return NONE if ratio is None else f"{show_ratio(ratio)} ({best})"


def lay_out(rows: Sequence[Sequence[str]]) -> str:
    """As a Markdown table, which is as easy to read in a terminal."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    head, *body = [
        "| " + " | ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([head, rule, *body])
