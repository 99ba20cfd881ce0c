"""The KV probe: the study's counts, exactness, and that a cache which is wrong is seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.engine.tiny import tiny_checkpoint  # noqa: E402
from torch import Tensor  # noqa: E402

from servewise.ask.probe_kv import probe_kv  # noqa: E402
from servewise.engine.checkpoint import load_checkpoint  # noqa: E402
from servewise.engine.decoder.decoder import Decoder  # noqa: E402
from servewise.engine.decoder.load import load_decoder  # noqa: E402
from servewise.engine.step import KvCache, StepInput  # noqa: E402
from servewise.errors import InputError, UnknownName  # noqa: E402
from servewise.probe.kv import Reply, cache_work, reply_with_cache, reply_without_cache  # noqa: E402
from servewise.study.published import CACHE_WORK  # noqa: E402

PROMPT = (3, 14, 15, 9, 26)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama."""
    torch.set_num_threads(1)
    return tiny_checkpoint(tmp_path_factory.mktemp("kv") / "tiny")


@pytest.fixture(scope="module")
def model(folder: Path) -> Decoder:
    """Its decoder in float64."""
    return load_decoder(load_checkpoint(folder), dtype=torch.float64)


def test_positions_are_those_of_the_study(model: Decoder) -> None:
    """After a 5-token prompt: 290/25, 980/45, 3,560/85 and 13,520/165 positions, counted by the code that runs."""
    without, cached = reply_without_cache(model, PROMPT, 160), reply_with_cache(model, PROMPT, 160)
    for tokens, (plain, with_cache, _) in CACHE_WORK.items():
        found = cache_work(without, cached, tokens)
        assert (found.positions_without, found.positions_with) == (int(plain.replace(",", "")), int(with_cache))


def test_a_cache_changes_nothing_in_float64(model: Decoder) -> None:
    """All tokens are equal and every logit within float64's rounding (the study: 4e-15 to 7e-15)."""
    found = cache_work(reply_without_cache(model, PROMPT, 40), reply_with_cache(model, PROMPT, 40), 40)
    assert found.equal_tokens == 40
    assert 0 < found.largest_difference < 1e-12
    assert found.smallest_margin > 1e-9  # no tie that rounding could have decided


class Forgetful:
    """A decoder whose cache loses the first token: what the probe is there to catch."""

    def __init__(self, model: Decoder) -> None:
        self._model = model
        self.config = model.config
        self.new_cache = model.new_cache

    def step(self, step: StepInput, cache: KvCache) -> Tensor:
        """The decoder's step on a cache whose first slot is emptied before every decode step."""
        if len(step.tokens_T) == 1:
            nothing = torch.zeros(1, self.config.kv_heads, self.config.head_dim, dtype=torch.float64)
            for layer in range(self.config.layers):
                cache.write(layer, torch.tensor([0]), nothing, nothing)
        return self._model.step(step, cache)


def test_a_cache_that_forgets_is_seen(model: Decoder) -> None:
    """A cache that loses one token's keys and values gives a logit difference far above rounding."""
    found = cache_work(reply_without_cache(model, PROMPT, 10), reply_with_cache(Forgetful(model), PROMPT, 10), 10)
    assert found.largest_difference > 1e-6


def test_logits_are_compared_up_to_the_first_different_token() -> None:
    """After it the runs are different texts, whose logits say nothing about the cache."""
    one, other = Reply(), Reply()
    rows = ([[0.0, 1.0], [0.0, 1.0], [9.0, 0.0]], [[0.0, 1.25], [1.5, 1.0], [0.0, 5.0]])
    for reply, values in zip((one, other), rows, strict=True):
        for place, row in enumerate(values):
            reply.take(torch.tensor([row]))
            reply.positions.append(place)
            reply.seconds.append(float(place))
    found = cache_work(one, other, 3)
    assert (found.equal_tokens, found.largest_difference, found.smallest_margin) == (1, 1.5, 0.5)


def test_the_answer_holds_the_table_and_its_conditions(folder: Path) -> None:
    """One row for each dtype and length, with counts equal to the closed form N P + N (N - 1) / 2 and P + N."""
    answer = probe_kv(str(folder), tokens=[8, 4], threads=1, prompt_tokens=3)
    document = json.loads(answer.dumps())
    rows = document["result"]["rows"]
    assert document["schema"] == "servewise.probe-kv/1"
    assert [(row["dtype"], row["tokens"]) for row in rows] == [
        (dtype, count) for dtype in ("float64", "float32") for count in (4, 8)
    ]
    assert [(row["positions_without_cache"], row["positions_with_cache"]) for row in rows[:2]] == [(18, 7), (52, 11)]
    assert all(row["tokens_identical"] for row in rows)
    assert all(row["wall_with_cache_s"] > 0 for row in rows)
    assert {"hardware", "load", "lengths", "precision", "model", "engine"} <= set(document["conditions"])


def test_mistakes_are_one_line_each(folder: Path) -> None:
    """A dtype, a length or a prompt that cannot be is refused, as is a model that is not here."""
    with pytest.raises(UnknownName, match="dtype"):
        probe_kv(str(folder), dtypes=["int3"])
    with pytest.raises(InputError, match="context of 512"):
        probe_kv(str(folder), tokens=[600])
    with pytest.raises(InputError, match="fewer than 50"):
        probe_kv(str(folder), prompt="short", prompt_tokens=50)
    with pytest.raises(InputError):
        probe_kv("no-such-model-anywhere")
