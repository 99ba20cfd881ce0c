"""The comparison of precisions: each once, computed as engines compute it."""

from __future__ import annotations

from servewise.ask.deploying import deploy
from servewise.ask.precisions import precision_rows


def names(model: str, accelerator: str, **options: object) -> list[str]:
    """The names of the rows."""
    return [row["name"] for row in precision_rows(deploy(model, accelerator, **options), 8, 2048, "ideal")]  # type: ignore[arg-type]


def test_a_checkpoint_in_fp8_is_not_compared_with_itself() -> None:
    """Each precision stands once, the deployment's own first."""
    found = names("deepseek-v3", "h200", tp=8)

    assert len(found) == len(set(found))
    assert found[0] == "fp8 weights, bf16 KV"


def test_fp8_weights_compute_in_fp8_where_the_chip_does() -> None:
    """At a batch that computes, fp8 weights are near twice as fast as bf16 on H100, and no faster in FLOPs on A100."""
    ratios = {}
    for chip in ("h100-sxm", "a100-80gb"):
        rows = precision_rows(deploy("llama-3.1-8b", chip), 2048, 1, "ideal")
        step = {row["name"]: row["step_s"] for row in rows}
        ratios[chip] = step["bf16 weights, bf16 KV"] / step["fp8 weights, bf16 KV"]

    assert ratios["h100-sxm"] > 1.7
    assert ratios["a100-80gb"] < 1.1
