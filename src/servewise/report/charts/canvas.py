"""From a plotting function to SVG text: same data, same text; readable by people and by screen readers."""

from __future__ import annotations

import hashlib
import html
import io
import re
import warnings
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from servewise.report.charts import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_svg import FigureCanvasSVG

WIDTH_IN, HEIGHT_IN = 4.9, 3.1  # 470 CSS pixels wide: its 12 px text stays readable on a telephone

_TAG = re.compile(r"<[^>]+>")
_STYLE: dict[str, object] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "text.color": palette.INK,
    "text.parse_math": False,  # a name may hold dollar signs
    "axes.edgecolor": palette.MUTED,
    "axes.labelcolor": palette.INK,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": False,
    "grid.color": palette.GRID,
    "grid.linewidth": 0.6,
    "xtick.color": palette.MUTED,
    "ytick.color": palette.MUTED,
    "xtick.labelcolor": palette.INK,
    "ytick.labelcolor": palette.INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.7,
    "lines.markersize": 4,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",  # text stays text: searchable, readable aloud, in the page's own font
    "svg.hashsalt": "servewise",
    "path.simplify": True,
    "hatch.linewidth": 0.8,
}

_DRAWING = Lock()


def draw(
    title: str,
    description: str,
    plot: Callable[[Axes], None],
    *,
    width_in: float = WIDTH_IN,
    height_in: float = HEIGHT_IN,
) -> str:
    """The SVG that ``plot`` draws on one pair of axes, with ``title`` and ``description`` for screen readers."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    # Its settings, and Python's warnings, are of the whole process: pages may be drawn in several threads.
    # A glyph missing from the measuring font is no fault: the browser draws the text, with its own fonts.
    with _DRAWING, mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)  # type: ignore[arg-type]
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        canvas = FigureCanvasSVG(figure)
        plot(figure.add_subplot())
        svg = _saved(canvas)
    return _finished(svg, title, description)


def _saved(canvas: FigureCanvasSVG) -> str:
    buffer = io.StringIO()
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))  # nothing that differs from day to day
    canvas.print_svg(buffer, metadata=metadata)  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def _finished(svg: str, title: str, description: str) -> str:
    body = svg[svg.index("<svg") :]
    head, inner = body.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    inner = _lean(inner)
    used = frozenset(re.findall(r'(?:url\(#|href="#)([^")]+)', inner))
    inner = _TAG.sub(lambda tag: _restyled(tag[0], used), inner)
    mark = hashlib.sha256((title + inner).encode("utf-8", "replace")).hexdigest()[:8]
    inner = _TAG.sub(lambda tag: _marked(tag[0], mark), inner)
    labels = f'<title id="t{mark}">{html.escape(title)}</title>\n<desc id="d{mark}">{html.escape(description)}</desc>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{box[0] if box else ""} role="img" aria-labelledby="t{mark} d{mark}">\n{labels}{inner}'
    ).rstrip()


def _restyled(tag: str, used: frozenset[str]) -> str:
    """A tag in the page's colours, without an id that nothing refers to."""
    for colour, name in palette.VARIABLES.items():
        tag = tag.replace(f": {colour}", f": var(--{name}, {colour})")
    return re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in used else "", tag)


def _marked(tag: str, mark: str) -> str:
    """A tag whose ids and references are this chart's own, so that several charts stand in one page."""
    tag = re.sub(r' id="([^"]+)"', rf' id="\g<1>{mark}"', tag)
    tag = re.sub(r"url\(#([^)]+)\)", rf"url(#\g<1>{mark})", tag)
    return re.sub(r'href="#([^"]+)"', rf'href="#\g<1>{mark}"', tag)


def _lean(inner: str) -> str:
    """Without metadata, matplotlib's own style sheet, comments and indentation."""
    inner = re.sub(r"<(metadata|style)\b.*?</\1>\s*", "", inner, flags=re.DOTALL)
    return re.sub(r"\n\s+", "\n", re.sub(r"<!--.*?-->\s*", "", inner, flags=re.DOTALL))
