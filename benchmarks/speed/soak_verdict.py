"""What a soak shows: leaks, growth, and whether every act ended as it should."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.speed.soak_server import BLOCKS

if TYPE_CHECKING:
    from benchmarks.speed.soak_acts import Soak

WARM_SHARE = 0.25  # of the run: caches, heaps and the Python of rare acts grow at first
BIN_S, LEAST_BINS = 60.0, 8
MOST_SLOPE_KIB_MIN = 64.0  # 90 MiB a day; what the interval must stay below
SPARE_DESCRIPTORS = 2  # connections of the last look


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The server at one moment: from /proc, and from its metrics."""

    at_s: float
    rss_bytes: int
    descriptors: int
    threads: int
    kv_use: float
    running: float
    inside: float


def trend(samples: Sequence[Sample]) -> dict[str, Any]:
    """The growth of memory after the warm-up: least squares over medians of a minute, with its 95% interval by t."""
    from scipy import stats

    start_s = WARM_SHARE * samples[-1].at_s
    bins: dict[int, list[int]] = {}
    for each in samples:
        if each.at_s >= start_s:
            bins.setdefault(int(each.at_s // BIN_S), []).append(each.rss_bytes)
    if len(bins) < LEAST_BINS:
        return {"judged": False, "why": f"{len(bins)} minutes after the warm-up; {LEAST_BINS} are needed"}
    minutes, kib = list(bins), [statistics.median(values) / 1024 for values in bins.values()]
    line = stats.linregress(minutes, kib)
    half = float(stats.t.ppf(0.975, len(bins) - 2)) * line.stderr
    return {
        "judged": True,
        "minutes": len(bins),
        "median_bytes": round(statistics.median(kib) * 1024),
        "slope_kib_per_minute": round(float(line.slope), 2),
        "slope_interval_95": [round(float(line.slope - half), 2), round(float(line.slope + half), 2)],
        "bar_kib_per_minute": MOST_SLOPE_KIB_MIN,
        "flat": bool(float(line.slope) + half < MOST_SLOPE_KIB_MIN),
    }


def verdict(
    soak: Soak,
    samples: Sequence[Sample],
    before: dict[str, int],
    after: Sample,
    page: dict[str, float],
    ended: tuple[int, str] | None,
) -> dict[str, Any]:
    """The result of record. ``before`` is the idle server after the references, ``after`` the idle one at the end."""
    rss, leaked = trend(samples), round(after.kv_use * BLOCKS)
    descriptors = {"before": before["descriptors"], "after": after.descriptors, "most": _most(samples, "descriptors")}
    threads = {"before": before["threads"], "after": after.threads, "most": _most(samples, "threads")}
    fine = (
        not soak.wrong
        and leaked == 0
        and (not rss["judged"] or rss["flat"])
        and threads["most"] <= before["threads"] + _executor()
        and after.descriptors <= before["descriptors"] + SPARE_DESCRIPTORS
        and ended == (0, "")
    )
    return {
        "passed": bool(fine),
        "requests": soak.total,
        "answers_compared": soak.compared,
        "outcomes": dict(sorted(soak.outcomes.items())),
        "wrong": soak.wrong,
        "leaked_blocks": leaked,
        "rss": rss,
        "rss_mib_each_minute": _each_minute(samples),
        "load_average": list(os.getloadavg()),
        "descriptors": descriptors,
        "threads": threads,
        "most_kv_use": _most(samples, "kv_use"),
        "server_counted": _counted(page),
        "exit_code": ended[0] if ended else None,
        "stderr": ended[1][-2000:] if ended else None,
    }


def _executor() -> int:
    """Threads that asyncio makes for what blocks, at most (concurrent.futures.ThreadPoolExecutor's default)."""
    return min(32, (os.cpu_count() or 1) + 4)


def _most(samples: Sequence[Sample], name: str) -> float:
    return max(float(getattr(each, name)) for each in samples)


def _each_minute(samples: Sequence[Sample]) -> list[float]:
    bins: dict[int, list[int]] = {}
    for each in samples:
        bins.setdefault(int(each.at_s // BIN_S), []).append(each.rss_bytes)
    return [round(statistics.median(values) / 2**20, 2) for values in bins.values()]


def _counted(page: dict[str, float]) -> dict[str, float]:
    """What the server itself counted of it."""
    wanted = (
        "vllm:request_success_total", "vllm:num_preemptions_total", "vllm:prompt_tokens_total",
        "vllm:generation_tokens_total", "vllm:prefix_cache_hits_total", "servewise:",
    )  # fmt: skip
    return {_short(name): value for name, value in page.items() if name.startswith(wanted)}


def _short(name: str) -> str:
    """Without the labels that are the same everywhere."""
    base, _, labels = name.partition("{")
    kept = [each for each in labels.rstrip("}").split(",") if not each.startswith(("model_name", "engine"))]
    return base + (f" {kept[0]}" if kept else "")
