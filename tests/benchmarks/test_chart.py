from xml.etree import ElementTree

from benchmarks.peers.chart import LEFT, RIGHT, WIDTH, Bar, draw_chart

SVG = "{http://www.w3.org/2000/svg}"
BARS = [Bar("arq", "peer", 500.0), Bar("drumline", "ours", 2000.0), Bar("bare <Lua>", "bare", 1000.0)]


def read_bars(chart: str) -> list[tuple[str | None, float]]:
    """The kind and the length of every bar, from the top."""
    bars = ElementTree.fromstring(chart).findall(f"{SVG}rect")
    return [(bar.get("class"), float(bar.get("width", "0"))) for bar in bars]


def test_bars_are_ordered_and_as_long_as_their_figures():
    full = WIDTH - LEFT - RIGHT
    assert read_bars(draw_chart("Drain", BARS)) == [("ours", full), ("bare", full / 2), ("peer", full / 4)]


def test_every_bar_has_its_name_and_its_figure():
    texts = [text.text for text in ElementTree.fromstring(draw_chart("Drain", BARS)).findall(f"{SVG}text")]
    assert texts == ["Drain", "drumline", "2,000", "bare <Lua>", "1,000", "arq", "500"]


def test_a_chart_of_nothing_is_a_title():
    assert read_bars(draw_chart("Drain", [])) == []


def test_letters_follow_what_the_reader_prefers():
    assert "@media (prefers-color-scheme: dark) { text { fill:" in draw_chart("Drain", BARS)
