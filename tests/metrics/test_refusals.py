"""What a user mistypes in an SLO, a gate or a claim: the message names the option, the text, the way to write it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from servewise.errors import InputError
from servewise.metrics.claim import judge, parse_claim
from servewise.metrics.comparison import METRICS, Gate, parse_gates
from servewise.metrics.slo import parse_slo

SLO_HINT = "; write it like ttft_p95<=1s, tpot_p95<=50ms"
GATE_HINT = "; write it like ttft_p95>+10%, output_tokens_per_s<-5%"
FIRST = "e.g. ttft_mean, ttft_p50, ttft_p90, ttft_p95, ttft_p99"
CLAIM_HINT = "; write a speed-up like 2.0x"

REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: parse_slo(" , "), "slo: an SLO needs at least one bound" + SLO_HINT),
    (lambda: parse_slo("ttft_p95 >= 1s"), "slo: cannot read the bound 'ttft_p95 >= 1s'" + SLO_HINT),
    (lambda: parse_slo("zzzz_p95<=1s"), "slo: unknown latency 'zzzz'; one of ttft, tpot, itl, e2e"),
    (lambda: parse_slo("ttft_zzz<=1s"), "slo: unknown percentile 'zzz'; one of mean, p50, p90, p95, p99"),
    (lambda: parse_slo("ttft_p95<=1h"), "slo: unknown unit of time 'h'; one of s, ms, us"),
    (lambda: parse_slo("ttft_p95<=0s"), "slo: the limit of 'ttft_p95<=0s' must be a time above 0" + SLO_HINT),
    (lambda: parse_slo("ttft_p95<=1e9s"), "slo: the limit of 'ttft_p95<=1e9s' must be a time above 0" + SLO_HINT),
    (
        lambda: parse_slo("e2e_p50<=1s,e2e_p50<=2s"),
        "slo: 'e2e_p50<=1s,e2e_p50<=2s' bounds one percentile twice; keep one of them",
    ),
    (lambda: parse_gates(" ; "), "fail-if: a gate needs at least one condition" + GATE_HINT),
    (lambda: parse_gates("ttft_p95=10%"), "fail-if: cannot read 'ttft_p95=10%'" + GATE_HINT),
    (lambda: parse_gates("ttft_p95>1.2.3%"), "fail-if: cannot read 'ttft_p95>1.2.3%'" + GATE_HINT),
    (lambda: parse_gates("qqqq>1%"), "fail-if: unknown metric 'qqqq'; " + FIRST),
    (lambda: parse_gates("ttft_p95>-101%"), "fail-if: a change of -101% cannot be" + GATE_HINT),
    (lambda: Gate("ttft_p95", ">", 0.1).fails([]), "fail-if: the runs do not both have ttft_p95"),
    (lambda: parse_claim("2x", "qqqq"), "metric: unknown metric 'qqqq'; " + FIRST),
    (lambda: parse_claim(" fast ", "tpot_p50"), "claim: cannot read 'fast'" + CLAIM_HINT),
    (lambda: parse_claim("0x", "tpot_p50"), "claim: cannot read '0x'" + CLAIM_HINT),
    (lambda: parse_claim("1000000x", "tpot_p50"), "claim: cannot read '1000000x'" + CLAIM_HINT),
    (lambda: parse_claim("2x", "tpot_p50", 1.0), "tolerance: 1 is no share below 1; 0.05 is 5%"),
    (lambda: parse_claim("2x", "tpot_p50", -0.1), "tolerance: -0.1 is no share below 1; 0.05 is 5%"),
    (lambda: judge(parse_claim("2x", "tpot_p50"), []), "claim: the runs do not both have tpot_p50"),
]


@pytest.mark.parametrize(("read", "words"), REFUSED, ids=[words[:50] for _, words in REFUSED])
def test_the_message_says_where_what_and_how(read: Callable[[], object], words: str) -> None:
    """One line: the option, what was read there, what to write instead."""
    with pytest.raises(InputError) as caught:
        read()

    assert str(caught.value) == words


def test_a_long_text_is_cut() -> None:
    """Of whatever was pasted the beginning stands in the line: 80 characters, 40 of a name."""
    for read, length in ((parse_slo, 80), (parse_gates, 80), (lambda text: parse_claim(text, "tpot_p50"), 40)):
        with pytest.raises(InputError) as caught:
            read("?" * 500)

        assert caught.value.what.count("?") == length


def test_the_limits_themselves_are_read() -> None:
    """A drop by all, a change of a million times, a tolerance of nothing, the fastest claim."""
    assert [gate.change for gate in parse_gates("ttft_p95<-100%, ttft_p95>100000000%")] == [-1.0, 1e6]
    assert parse_claim("999999x", "tpot_p50", 0.0).least == 999999.0
    assert parse_claim(" 2 × ", "tpot_p50").factor == parse_claim("2X", "tpot_p50").factor == 2.0
    assert [str(gate) for gate in parse_gates("ITL_P99>+2.5%;utilisation<-5 %")] == [
        "itl_p99 > +2.5%",
        "utilisation < -5%",
    ]
    assert all(parse_gates(f"{metric}>1%")[0].metric == metric for metric in METRICS)
