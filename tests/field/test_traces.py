"""The bundled traces against the figures published and counted for them by others."""

from __future__ import annotations

import numpy as np
import pytest

from servewise.workload.load import load_workload
from servewise.workload.traces.trace import Trace

# name, requests, prompt mean p50 p90 p99 max, output mean p50 p90 p99 max; counted from the sources' own files with
# nearest-rank percentiles. Splitwise (arXiv:2311.18677, section III) gives medians of 1,020/129 and 1,500/13.
FIGURES = [
    ("azure-code", 8_819, (2_048, 1_469, 5_194, 7_436, 7_437), (27.9, 13, 55, 252, 1_899)),
    ("azure-conv", 19_366, (1_155, 1_020, 2_735, 4_142, 14_050), (211, 129, 424, 601, 1_000)),
    ("mooncake-conv", 12_031, (12_035, 6_909, 27_367, 85_401, 126_195), (343, 350, 597, 1_120, 2_000)),
]


def bundled(name: str) -> Trace:
    """The bundled trace of that name."""
    found = load_workload(name)
    assert isinstance(found, Trace)
    return found


@pytest.mark.parametrize(("name", "requests", "prompts", "outputs"), FIGURES)
def test_lengths_are_those_of_the_source(
    name: str, requests: int, prompts: tuple[float, ...], outputs: tuple[float, ...]
) -> None:
    """Number of requests, mean, p50, p90, p99 and maximum of prompts and outputs must be the source's."""
    trace = bundled(name)
    assert len(trace) == requests
    for column, figures in ((trace.recorded.prompt_tokens, prompts), (trace.recorded.output_tokens, outputs)):
        values = np.asarray(column)
        assert values.mean() == pytest.approx(figures[0], rel=2e-3)
        found = np.quantile(values, [0.5, 0.9, 0.99, 1.0], method="inverted_cdf")
        assert found == pytest.approx(figures[1:], rel=1e-3)


def test_azure_traces_span_their_hour() -> None:
    """The conversation trace runs from 18:15:46.6805900 to 19:14:08.4025270, to 0.1 µs."""
    span = 58 * 60 + 21 + 0.7219370
    assert bundled("azure-conv").recorded.arrival_s[-1] == pytest.approx(span, abs=1e-7)
    assert bundled("azure-conv").rate_per_s == pytest.approx(19_365 / span)


def test_mooncake_prefix_blocks_are_as_counted() -> None:
    """With an endless cache, leading blocks only, in order of arrival, 36.64% of 288,500 blocks are found."""
    seen: set[int] = set()
    found = total = 0
    for request in bundled("mooncake-conv").requests(0):
        total += len(request.block_hashes)
        for block in request.block_hashes:
            if block not in seen:
                break
            found += 1
        seen.update(request.block_hashes)
    assert total == 288_500
    assert round(100 * found / total, 2) == 36.64
