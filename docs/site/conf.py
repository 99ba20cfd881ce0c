"""Sphinx's settings: Markdown by MyST, the theme Furo, nothing from a network; see docs/decisions/0009-the-site.md."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from examples import with_outputs

project = "servewise"
author = "the servewise authors"
copyright = author  # noqa: A001  (Sphinx's name)
release = version = installed("servewise")

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "site"]
nitpicky = True

html_theme = "furo"
html_title = f"servewise {version}"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": False}
pygments_style = "tango"
pygments_dark_style = "monokai"


def set_outputs(_: object, __: str, source: list[str]) -> None:
    """Run a page's console blocks and set what they print below; ``SERVEWISE_DOCS_RUN=0`` leaves them as they are."""
    if os.environ.get("SERVEWISE_DOCS_RUN", "1") != "0":
        source[0] = with_outputs(source[0])


def setup(app: Any) -> None:
    """Sphinx's hook."""
    app.connect("source-read", set_outputs)
