"""Charts: true lengths, words that do not overlap, the same text each time, readable without eyes."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from tests.report.documents import NAMES, answer

from servewise.report.charts import canvas, palette
from servewise.report.charts.bars import Cost, cost_chart
from servewise.report.charts.labels import spread
from servewise.report.charts.latency import LatencyLine, LatencyPoint, latency_chart
from servewise.report.charts.memory import Part, memory_chart
from servewise.report.charts.scales import binary_tick, count_tick, decades, seconds_tick
from servewise.report.charts.steptime import Ridge, StepPoint, steptime_chart
from servewise.report.figures import figures_of

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = [name for name in NAMES if name not in ("plan-unmet", "check")]


def widths(svg: str, colour: str) -> list[float]:
    """The widths of the rectangles filled with ``colour``, in order."""
    found = []
    for path in ET.fromstring(svg).iter(f"{SVG}path"):
        numbers = [float(each) for each in re.findall(r"-?\d+\.?\d*", path.get("d", ""))]
        if f"fill: var(--{palette.VARIABLES[colour]}, {colour})" in path.get("style", "") and len(numbers) >= 8:
            found.append(max(numbers[::2]) - min(numbers[::2]))
    return found


def test_memory_bars_are_as_long_as_their_bytes() -> None:
    """A part of twice the bytes is drawn twice as long."""
    svg = memory_chart([Part("Weights", 20e9), Part("KV cache", 40e9), Part("Not used", 20e9)], 80e9)
    weights, kv = widths(svg, palette.SERIES[0]), widths(svg, palette.SERIES[2])

    assert max(kv) == pytest.approx(2 * max(weights), rel=0.01)


def test_cost_bars_are_as_long_as_their_dollars() -> None:
    """Bars start at zero: three times the cost is three times the length, and the cheapest stands first."""
    svg = cost_chart([Cost("dear", 0.9), Cost("cheap", 0.3)])
    cheap, dear = widths(svg, palette.SERIES[0]), widths(svg, palette.SERIES[5])

    assert max(dear) == pytest.approx(3 * max(cheap), rel=0.01)
    assert svg.index(">cheap<") < svg.index(">dear<")


def polylines(svg: str, colour: str) -> list[list[tuple[float, float]]]:
    """The corners of the lines stroked in ``colour``."""
    stroke = f"stroke: var(--{palette.VARIABLES[colour]}, {colour})"
    found = []
    for path in ET.fromstring(svg).iter(f"{SVG}path"):
        if stroke in path.get("style", "") and "fill: none" in path.get("style", ""):
            numbers = [float(each) for each in re.findall(r"-?\d+\.?\d*", path.get("d", ""))]
            found.append(list(zip(numbers[::2], numbers[1::2], strict=True)))
    return found


def test_step_times_stand_on_logarithmic_axes() -> None:
    """Batches that double are equally far apart, and so are times that grow tenfold."""
    points = [
        StepPoint(1, 1e-4, 1e-3, 1e-3, 1e-3),
        StepPoint(2, 1e-3, 1e-2, 1e-2, 1e-2),
        StepPoint(4, 1e-2, 1e-1, 1e-1, 1e-1),
    ]
    (x1, y1), (x2, y2), (x3, y3) = max(polylines(steptime_chart(points), palette.SERIES[0]), key=len)[:3]

    assert x3 - x2 == pytest.approx(x2 - x1, rel=0.01)
    assert y2 - y1 == pytest.approx(y3 - y2, rel=0.01)
    assert y2 < y1, "a longer time stands higher"


def test_a_ridge_is_named_with_its_batch() -> None:
    """The ridge stands in the chart as a word and a number."""
    points = [StepPoint(each, 1e-4 * each, 1e-2, 1e-2, 1e-2) for each in (1, 16, 256)]

    assert "ridge: batch 156" in steptime_chart(points, [Ridge(156.3, "ridge")])


def test_the_target_and_the_knees_are_drawn() -> None:
    """An SLO's bound is named at its line, a knee is told to those who cannot see its shade."""
    line = LatencyLine("continuous", (LatencyPoint(1, 0.2), LatencyPoint(2, 3.0, (2.0, 4.0), False)), (1.5, 1.8))
    svg = latency_chart("TTFT p95", [line], limit_s=1.0)

    assert "target 1 s" in svg
    assert "saturating at 1.5 to 1.8" in svg
    assert "hollow: unstable" in svg


@pytest.mark.parametrize("name", DRAWN)
def test_charts_are_well_formed_and_say_what_they_show(name: str) -> None:
    """Each chart is XML, is an image with a title and a description, names both axes' units, and links to nothing."""
    figures = figures_of(answer(name))
    assert figures

    for figure in figures:
        root = ET.fromstring(figure.svg)
        labels = root.get("aria-labelledby", "").split()
        named = {each.get("id"): each.text for each in root if each.tag in (f"{SVG}title", f"{SVG}desc")}
        assert root.get("role") == "img"
        assert all(named.get(label) for label in labels)
        assert len(labels) == 2
        assert not re.search(r'(?:href|src)="(?!#)', figure.svg)
        assert len(figure.svg) < 60_000, "a chart stays light"


@pytest.mark.parametrize("name", DRAWN)
def test_charts_are_the_same_each_time(name: str) -> None:
    """No date, no random id: drawn twice, the text is equal."""
    assert [figure.svg for figure in figures_of(answer(name))] == [figure.svg for figure in figures_of(answer(name))]


@pytest.mark.parametrize("name", DRAWN)
def test_every_figure_has_conditions_and_numbers(name: str) -> None:
    """No figure leaves without its conditions, nor without a table of what it shows."""
    for figure in figures_of(answer(name)):
        assert figure.conditions == answer(name).conditions
        assert figure.table.cells


def boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    """Each word of a figure and where it stands, at the 72 dots an inch of an SVG."""
    figure.set_dpi(72)
    figure.draw_without_rendering()
    unseen = [label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in beyond(axis)]
    words = [each for each in figure.findobj(Text) if isinstance(each, Text) and each not in unseen]
    return [(each.get_text(), each.get_window_extent()) for each in words if each.get_visible() and each.get_text()]


def beyond(axis: Axis) -> list[Text]:
    """The labels of ticks beyond the axis' ends, which are not drawn."""
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]


@pytest.mark.parametrize("name", DRAWN)
def test_words_do_not_overlap(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every chart no word covers another, and all stand within the picture."""
    seen = []
    saved = canvas._saved

    def watched(found: FigureCanvasSVG) -> str:
        words = boxes(found.figure)
        seen.append((found.figure.bbox.frozen(), words))
        return saved(found)

    monkeypatch.setattr(canvas, "_saved", watched)
    figures_of(answer(name))

    for frame, words in seen:
        for (one, first), (other, second) in itertools.combinations(words, 2):
            both = Bbox.intersection(first, second)
            assert both is None or min(both.width, both.height) < 1.5, f"{one!r} covers {other!r}"
        for word, box in words:
            assert frame.x0 - 1 <= box.x0, word
            assert box.x1 <= frame.x1 + 1, word


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_labels_are_spread(heights: list[float]) -> None:
    """Labels keep their order and a gap, and none leaves the axes, as long as there is room for all."""
    found = spread(heights, 0.1)
    order = sorted(range(len(heights)), key=lambda index: (heights[index], index))
    placed = [found[index] for index in order]

    assert all(later - earlier >= 0.1 - 1e-9 for earlier, later in itertools.pairwise(placed))
    assert min(placed) >= -1e-9
    assert max(placed) <= 1 + 1e-9


@given(st.floats(-9, 9), st.floats(0.05, 12), st.integers(4, 10))
def test_a_logarithmic_axis_has_a_few_ticks(start: float, span: float, most: int) -> None:
    """Whatever its span, an axis has from two to ``most`` (or seven even) ticks, rising, all within."""
    low, high = 10.0**start, 10.0 ** (start + span)
    ticks = decades(low, high, most)

    assert 2 <= len(ticks) <= max(most, 7)
    assert ticks == sorted(set(ticks))
    assert low * 0.998 <= ticks[0]
    assert ticks[-1] <= high * 1.002


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (seconds_tick(0.02), "20 ms"),
        (seconds_tick(1.0), "1 s"),
        (seconds_tick(5e-5), "50 µs"),
        (count_tick(16_000), "16k"),
        (count_tick(1e-5), "1e-5"),
        (count_tick(0.5), "0.5"),
        (binary_tick(2048), "2,048"),
        (binary_tick(131_072), "128k"),
        (binary_tick(2**20), "1M"),
    ],
)
def test_ticks(said: str, expected: str) -> None:
    """Ticks read as the field writes them."""
    assert said == expected


def contrast(colour: str, paper: str) -> float:
    """Contrast ratio of WCAG 2.1 (relative luminance, section 1.4.3)."""
    bright, dark = sorted((luminance(colour), luminance(paper)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour (WCAG 2.1)."""
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", [palette.INK, palette.MUTED, *palette.SERIES])
def test_colours_are_readable_as_text(colour: str) -> None:
    """Every colour that words are set in has WCAG AA contrast (4.5) on the charts' paper."""
    assert contrast(colour, palette.PAPER) >= 4.5
