"""The scraping thread: it samples while entered, never fails a run, and leaves a server without metrics alone."""

from __future__ import annotations

import threading
import time

from servewise.errors import InputError
from servewise.measure.scrape.scraper import Scraper

PAGE = b"vllm:num_requests_running 2\n"


def test_it_samples_until_it_is_left() -> None:
    """A sample at the beginning, one at each interval, one at the end, on the clock asked for; then the thread ends."""
    enough = threading.Event()
    asked: list[float] = []

    def fetch() -> bytes:
        asked.append(time.monotonic())
        if len(asked) >= 3:
            enough.set()
        return PAGE

    with Scraper(fetch, every_s=0.01) as scraper:
        scraper.count_from(time.monotonic() + 100)
        assert enough.wait(30)

    count = len(asked)
    assert scraper.timeline.columns["running"] == [2.0] * count
    assert scraper.timeline.time_s == sorted(scraper.timeline.time_s)
    assert -101 < scraper.timeline.time_s[0] < -99
    assert scraper.timeline.engine == "vllm"
    assert not any(each.name == "metrics" for each in threading.enumerate())


def test_a_server_without_metrics_is_asked_once() -> None:
    """A refusal at the start is the end of asking, with its reason."""
    asked = []

    def fetch() -> bytes:
        asked.append(1)
        raise InputError("404 for /metrics")

    with Scraper(fetch, every_s=0.001) as scraper:
        time.sleep(0.02)

    assert len(asked) == 1
    assert "404" in scraper.reason
    assert scraper.timeline.time_s == []


def test_a_page_that_fails_later_is_counted_and_asked_for_again() -> None:
    """A restart or a slow answer in mid-run costs its samples and nothing else."""
    enough = threading.Event()
    pages = iter([PAGE, b"vllm:num_requests_running two\n", b"\xff", *[PAGE] * 10_000])

    def fetch() -> bytes:
        if scraper.timeline.failures == 2:
            enough.set()
        return next(pages)

    scraper = Scraper(fetch, every_s=0.002)
    with scraper:
        assert enough.wait(30)

    assert scraper.timeline.failures == 2
    assert len(scraper.timeline.time_s) >= 2
