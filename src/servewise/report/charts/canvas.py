"""From a plotting function to SVG text: same data, same text; readable by people and by screen readers."""

from __future__ import annotations

import hashlib
import html
import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from servewise.report.charts import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN, HEIGHT_IN = 4.9, 3.1  # 470 CSS pixels wide: its 12 px text stays readable on a telephone

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

    # A glyph missing from the measuring font is no fault: the browser draws the text, with its own fonts.
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)  # type: ignore[arg-type]
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        canvas = FigureCanvasSVG(figure)
        plot(figure.add_subplot())
        buffer = io.StringIO()
        canvas.print_svg(  # type: ignore[no-untyped-call]
            buffer, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    return _finished(buffer.getvalue(), title, description)


def _finished(svg: str, title: str, description: str) -> str:
    body = svg[svg.index("<svg") :]
    head, inner = body.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    inner = re.sub(r"<metadata>.*?</metadata>\s*", "", inner, flags=re.DOTALL)
    inner = _lean(_named(_coloured(inner)))
    mark = hashlib.sha256((title + inner).encode("utf-8", "replace")).hexdigest()[:8]
    inner = _marked(inner, mark)
    labels = f'<title id="t{mark}">{html.escape(title)}</title>\n<desc id="d{mark}">{html.escape(description)}</desc>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{box[0] if box else ""} role="img" aria-labelledby="t{mark} d{mark}">\n{labels}{inner}'
    ).rstrip()


def _coloured(inner: str) -> str:
    for colour, name in palette.VARIABLES.items():
        inner = inner.replace(f": {colour}", f": var(--{name}, {colour})")
    return inner


def _named(inner: str) -> str:
    """Without the ids that nothing refers to."""
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', inner))
    return re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in used else "", inner)


def _marked(inner: str, mark: str) -> str:
    """With ids of its own, so that several charts stand in one page."""
    inner = re.sub(r' id="([^"]+)"', rf' id="\g<1>{mark}"', inner)
    inner = re.sub(r"url\(#([^)]+)\)", rf"url(#\g<1>{mark})", inner)
    return re.sub(r'href="#([^"]+)"', rf'href="#\g<1>{mark}"', inner)


def _lean(inner: str) -> str:
    """Without matplotlib's own style sheet, comments and indentation."""
    inner = re.sub(r"<style[^>]*>.*?</style>\s*", "", inner, flags=re.DOTALL)
    inner = re.sub(r"<!--.*?-->\s*", "", inner, flags=re.DOTALL)
    return re.sub(r"\n\s+", "\n", inner)
