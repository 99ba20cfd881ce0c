"""The figures that pages quote are those of the records, to the digits quoted."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from docs.site.examples import DOCS

RESULTS = DOCS.parent / "benchmarks" / "results"


def record(name: str) -> Any:
    """A result of record."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def page(name: str) -> str:
    """A page's text, its lines joined."""
    return " ".join((DOCS / f"{name}.md").read_text().split())


def quotes(said: str, measured: float) -> bool:
    """Whether ``said`` is ``measured``, rounded to as many digits as it has."""
    digits = len(said.partition(".")[2])
    return abs(float(said) - measured) <= 0.5000001 / 10.0**digits


def small(part: str, server: str, weights: str, prefix_cache: bool = False) -> dict[int, dict[str, Any]]:
    """The rows of the experiment on small servers, by streams."""
    rows = record("serve_small")["result"]["rows"]
    return {
        row["concurrency"]: row
        for row in rows
        if (row["part"], row["server"], row["weights"], row["prefix_cache"]) == (part, server, weights, prefix_cache)
    }


SERVED = [
    ("16-bit", "llama.cpp", "bf16", "33 / 74 / 91"),
    ("quantised", "llama.cpp", "q8_0", "51 / 101 / 122"),
    ("quantised", "llama.cpp", "q4_0", "69 / 129 / 139"),
    ("16-bit", "vLLM", "bf16", "25 / 156 / 383"),
    ("quantised", "vLLM", "int8", "37 / 190 / 421"),
]


@pytest.mark.parametrize(("part", "server", "weights", "said"), SERVED)
def test_tokens_per_second_by_bits(part: str, server: str, weights: str, said: str) -> None:
    """The table of bits and speed quotes the experiment on small servers."""
    rows = small(part, server, weights)

    assert said in page("how-many-bits")
    assert all(
        quotes(each, rows[n]["output_tokens_per_s"]) for each, n in zip(said.split(" / "), (1, 8, 32), strict=True)
    )


@pytest.mark.parametrize(
    ("server", "off", "on"), [("llama.cpp", "8.2", "3.5"), ("vLLM", "1.01", "0.51"), ("servewise", "0.50", "0.25")]
)
def test_first_tokens_over_a_shared_prefix(server: str, off: str, on: str) -> None:
    """TTFT with the cache off and on, 8 streams, as two pages quote it."""
    cold, warm = (small("prefix", server, "bf16", cached)[8]["ttft_s"]["p50"] for cached in (False, True))

    assert quotes(off, cold)
    assert quotes(on, warm)
    assert re.search(rf"{off} and {on} s", page("make-the-prefix-cache-hit"))
    assert re.search(rf"{off} to {on} s", page("the-one-page"))


def test_the_cost_of_bits_in_quality() -> None:
    """Each KL and agreement of the table is the record's."""
    cells = re.findall(r"^\| (\d) \| ([\d.]+) \(([\d.]+)%\) \| ([\d.]+) \(([\d.]+)%\) \| ([\d.]+) \(([\d.]+)%\)", (DOCS / "how-many-bits.md").read_text(), re.M)  # fmt: skip  # noqa: E501
    rows = record("quantise_smollm2")["rows"]
    by_channel = [row for row in rows if row["group"] == "channel" and row["method"] == "rtn"]
    columns = (("weights", None), ("kv", "token"), ("kv", "channel"))

    assert [each[0] for each in cells] == ["8", "6", "4", "3", "2"]
    for bits, *said in cells:
        for (target, keys), kl, top in zip(columns, said[::2], said[1::2], strict=True):
            found = [
                row for row in by_channel if (row["target"], row["bits"], row.get("keys")) == (target, int(bits), keys)
            ]
            assert any(quotes(kl, row["kl"]) and quotes(top, 100 * row["top1_agreement"]) for row in found)


def test_the_clients_own_error() -> None:
    """The column of our client is its record, in milliseconds."""
    rows = {row["streams"]: row for row in record("client_speed")["rows"]}
    said = re.findall(r"^\| ([\d,]+) \|.*\| ([\d.]+) / ([\d.]+) \|$", (DOCS / "compare-with-other-tools.md").read_text(), re.M)  # fmt: skip  # noqa: E501

    assert len(said) == 4
    for streams, mean, high in said:
        row = rows[int(streams.replace(",", ""))]
        assert quotes(mean, 1e3 * row["ttft_mean_s"])
        assert quotes(high, 1e3 * row["ttft_p99_s"])


def test_held_out_errors_of_served_engines() -> None:
    """TPOT and TTFT of published servers, ours and AIConfigurator's, as compared and as calibrated."""
    held = record("e2e_measured")["sets"]["held out: another model or load"]["overall"]
    said = page("compare-with-other-tools")

    assert quotes("6.0", 100 * held["tpot_median"]) or quotes("6.1", 100 * held["tpot_median"])
    assert quotes("12.6", 100 * held["ttft_median"])
    assert f"11% and 43% on {held['peer_points']} of the {held['points']}" in said
    assert quotes("11", 100 * held["peer_tpot_median"])
    assert quotes("43", 100 * held["peer_ttft_median"])
