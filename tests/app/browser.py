"""Debian's Chromium, driven by Playwright; what any view must hold to, read from the page's own document."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

REQUIRED = "SERVEWISE_BROWSER"  # set to "required" where a missing browser is a failure, as in CI
SHOTS = Path("build/screenshots")
PATIENCE_MS = 60_000
LEAST_CONTRAST = 4.5

# Pairs of texts in one chart whose boxes share more than a pixel's width.
OVERLAPS = """() => [...document.querySelectorAll('figure svg')].flatMap((svg) => {
  const texts = [...svg.querySelectorAll('text')].filter((text) => text.textContent.trim());
  const boxes = texts.map((text) => text.getBoundingClientRect());
  const found = [];
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 0.35 * Math.min(a.height, b.height))
      found.push(`${texts[i].textContent} | ${texts[i + 1 + j].textContent}`);
  }));
  return found;
})"""

# Texts that are cut by the edge of their chart.
CUT = """() => [...document.querySelectorAll('figure svg')].flatMap((svg) => {
  const edge = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.left < edge.left - 1 || box.right > edge.right + 1
      || box.top < edge.top - 1 || box.bottom > edge.bottom + 1;
  }).map((text) => text.textContent);
})"""

# Texts with their contrast against what lies behind them, by WCAG 2's formula, where it is too little.
CONTRAST = """(least) => {
  const numbers = (colour) => (colour.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)); };
  const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = (rgb) => {
    const [r, g, b] = rgb.map((each) => linear(each / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement)
      layers.push(numbers(getComputedStyle(each).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const unread = 'script, noscript, datalist, title, desc, .unseen, .skip, caption';
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const poor = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest(unread)) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    const ground = behind(element);
    const ink = over(numbers(element.closest('svg') ? style.fill : style.color), ground);
    const [a, b] = [light(ink), light(ground)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least) poor.push(`${ratio.toFixed(2)} ${node.textContent.trim().slice(0, 40)}`);
  }
  return poor;
}"""

# Controls that a screen reader could not name.
NAMELESS = """() => {
  const controls = 'input, select, textarea, button, a, summary, [role="group"], [role="region"]';
  const named = (each) => (each.labels && each.labels.length) || each.getAttribute('aria-label')
    || each.getAttribute('aria-labelledby') || each.textContent.trim();
  const nameless = [...document.querySelectorAll(controls)].filter((each) => !named(each));
  return nameless.map((each) => each.outerHTML.slice(0, 120));
}"""


def chromium() -> str:
    """Where the browser lies; skips where there is none, or fails where one is required."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        import playwright  # noqa: F401
    except ImportError:
        found = None
    if found is None:
        missing = "no Chromium (apt-get install chromium) or no playwright (pip install 'servewise[test]')"
        if os.environ.get(REQUIRED) == "required":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


@contextmanager
def started(*runs: Path) -> Iterator[str]:
    """The page's address, served by ``servewise app`` as a process."""
    command = [sys.executable, "-m", "servewise", "app", "--port", "0", "--no-browser", *map(str, runs)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+", first)
        assert address, first
        yield address[0]
    finally:
        process.terminate()
        rest = process.communicate(timeout=20)[1]
    assert "Traceback" not in rest, rest


class Watch:
    """What a page says and asks for while it is driven: it must stay silent, and with its own host."""

    def __init__(self, page: Any, own: str) -> None:
        self.said: list[str] = []
        self.elsewhere: list[str] = []
        page.on("console", lambda message: self._console(message.type, message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self._request(request.url, own))

    def _console(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "422" not in text:  # a refused input's status is told on the console
            self.said.append(text)

    def _request(self, url: str, own: str) -> None:
        if not url.startswith((own, "data:", f"blob:{own}")):
            self.elsewhere.append(url)


def tidy(page: Any) -> None:
    """Nothing overflows, overlaps, is cut, too pale or without a name."""
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(CUT) == []
    assert page.evaluate(CONTRAST, LEAST_CONTRAST) == []
    assert page.evaluate(NAMELESS) == []


def shot(page: Any, name: str) -> None:
    """Keep a picture of the whole page."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


def settled(page: Any) -> None:
    """Wait until an answer stands and nothing runs."""
    page.wait_for_function(
        "() => document.querySelector('#answer #command') && document.querySelector('#running').hidden"
        " && !document.querySelector('#answer').classList.contains('stale')",
        timeout=PATIENCE_MS,
    )
