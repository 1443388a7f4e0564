"""A chart of bars as SVG, legible on light and on dark ground. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from benchmarks.peers.systems import Kind

WIDTH = 760
LEFT = 230
RIGHT = 90
TOP = 44
STEP = 26
THICK = 16
# The middle tones keep their contrast on both grounds; letters change with what the reader prefers.
_STYLE = """text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; }
.ours { fill: #d9480f; }
.bare { fill: #6e7781; }
.peer { fill: #4c78a8; }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3; } }"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One system and its figure."""

    name: str
    kind: Kind
    figure: float


def draw_chart(title: str, bars: Sequence[Bar]) -> str:
    """The bars from the longest to the shortest, each with its name and its figure; the longest fills the width."""
    ordered = sorted(bars, key=lambda bar: bar.figure, reverse=True)
    most = max((bar.figure for bar in bars), default=0.0) or 1.0
    height = TOP + STEP * len(ordered) + 10
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">',
        f"<style>\n{_STYLE}\n</style>",
        f'<text class="title" x="0" y="20">{escape(title)}</text>',
        *(_draw_bar(bar, TOP + STEP * place, bar.figure / most) for place, bar in enumerate(ordered)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _draw_bar(bar: Bar, top: int, share: float) -> str:
    length = share * (WIDTH - LEFT - RIGHT)
    line = top + THICK - 4
    return (
        f'<text x="{LEFT - 8}" y="{line}" text-anchor="end">{escape(bar.name)}</text>'
        f'<rect class="{bar.kind}" x="{LEFT}" y="{top}" width="{length:.1f}" height="{THICK}" rx="2"/>'
        f'<text x="{LEFT + length + 6:.1f}" y="{line}">{bar.figure:,.0f}</text>'
    )
