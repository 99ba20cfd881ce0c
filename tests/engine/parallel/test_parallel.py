"""Several ranks that share a model give what one rank gives."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from tests.engine.decoder.feeder import Feeder
from tests.engine.parallel.ranks import run
from tests.engine.tiny import tiny_checkpoint

from servewise.engine.checkpoint import load_checkpoint
from servewise.engine.config import DecoderConfig, RopeConfig
from servewise.engine.decoder.load import load_decoder
from servewise.engine.parallel.leading import decoded, encoded
from servewise.engine.parallel.share import share_of
from servewise.errors import InputError

ROOT = Path(__file__).parents[3]
BOUND_S = 90
CASES: dict[str, dict[str, Any]] = {
    "even, biased, q and k norms": {"family": "qwen3", "attention_bias": True},
    "3 KV heads on 2 ranks, odd widths": {
        "family": "llama",
        "hidden": 96,
        "heads": 6,
        "kv_heads": 3,
        "intermediate": 101,
        "vocabulary": 321,
        "tied": True,
        "attention_bias": True,
        "mlp_bias": True,
    },
    "1 KV head on 2 ranks": {"family": "qwen2", "kv_heads": 1},
}
FEEDS = [
    {"a": [5, 6, 7, 8, 9, 10, 11], "b": [12]},
    {"a": [4], "b": [13]},
    {"b": [7, 8, 9], "c": list(range(20, 40)), "a": [3]},
    {"a": [1], "b": [2], "c": [3]},
]
CONFIG = DecoderConfig(
    name="8b",
    family="llama",
    hidden=4096,
    layers=32,
    heads=32,
    kv_heads=8,
    head_dim=128,
    intermediate=14336,
    vocabulary=128256,
    max_context_tokens=8192,
    norm_epsilon=1e-5,
    rope=RopeConfig(theta=5e5, dimensions=128),
    tied=False,
)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_ranks_give_the_logits_of_one(case: str, tmp_path: Path) -> None:
    """Prompts, chunks and decodes on two processes: float64 logits within 1e-10 of one process."""
    folder = tiny_checkpoint(tmp_path / "model", dtype=torch.float64, **CASES[case])
    job = tmp_path / "job.pt"
    torch.save({"folder": str(folder), "dtype": torch.float64, "feeds": FEEDS}, job)
    command = [sys.executable, "-m", "tests.engine.parallel.ranks"]
    processes = [
        subprocess.Popen(
            [*command, str(rank), "2", str(tmp_path / "store"), str(job)], cwd=ROOT, stderr=subprocess.PIPE
        )
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=BOUND_S)[1].decode() for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], errors
    want = run(FEEDS, load_decoder(load_checkpoint(folder), dtype=torch.float64))

    for got, wanted in zip(torch.load(job.with_suffix(".out")), want, strict=True):
        for name, logits in wanted.items():
            torch.testing.assert_close(got[name], logits, rtol=0, atol=1e-10)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8, 16, 32])
def test_every_part_is_on_just_one_rank(ranks: int) -> None:
    """The ranks' heads, widths and vocabularies are the whole, once each; each has the KV heads that its heads read."""
    shares = [share_of(CONFIG, rank, ranks) for rank in range(ranks)]
    group = CONFIG.heads // CONFIG.kv_heads

    for field, size in (("heads", 32), ("inner", 14336), ("vocabulary", 128256)):
        assert [each for share in shares for each in getattr(share, field)] == list(range(size))
    for share in shares:
        assert sorted({head // group for head in share.heads}) == list(share.kv_heads)
    assert sorted({each for share in shares for each in share.kv_heads}) == list(range(8))


@pytest.mark.parametrize("ranks", [12, 64])
def test_heads_that_cannot_be_dealt_are_refused(ranks: int) -> None:
    """More ranks than KV heads, but no multiple that divides the heads: one line."""
    with pytest.raises(InputError, match=f"cannot be dealt to {ranks} ranks"):
        share_of(CONFIG, 0, ranks)
    with pytest.raises(InputError, match="rank 2 of 2"):
        share_of(CONFIG, 2, 2)


def test_an_announced_step_arrives_as_it_was() -> None:
    """A step, even one without wanted rows, is the same after its way over the wire."""
    feeder = Feeder(Stub())
    for new in FEEDS:
        step = feeder.step_of(new)
        for sent in (step, replace(step, rows_R=step.rows_R[:0])):
            got = decoded(encoded(sent), torch.device("cpu"))
            for name in ("tokens_T", "positions_T", "slots_T", "rows_R"):
                assert getattr(got, name).equal(getattr(sent, name))
            for name in ("query_starts", "context_tokens", "block_tables"):
                assert getattr(got, name) == getattr(sent, name)


class Stub:
    """A model that only makes caches."""

    config = CONFIG

    def new_cache(self, blocks: int, block_tokens: int = 16) -> Any:
        return type("Cache", (), {"block_tokens": block_tokens})()

    def step(self, step: Any, cache: Any) -> Any:
        raise AssertionError
