"""Every kind of draft against plain decoding, on the decoder of a tiny random checkpoint in float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.tiny import VOCABULARY, tiny_checkpoint

from servewise.engine.checkpoint import load_checkpoint
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.decoder.load import load_decoder
from servewise.engine.quantised.grid import Grid
from servewise.engine.quantised.model import quantise
from servewise.engine.quantised.scheme import Scheme
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.speculative.cached_model import CachedModel
from servewise.engine.speculative.decoder import Request, SpeculativeDecoder, generate
from servewise.engine.speculative.draft_length import FixedLength
from servewise.engine.speculative.lane import Draft
from servewise.engine.speculative.model_draft import ModelDraft
from servewise.engine.speculative.ngram import NgramDraft

torch.set_num_threads(1)
ROOM = 1024
TOKENS = 14
SETTINGS = SamplingSettings(temperature=0.0, max_tokens=TOKENS, ignore_end=True)
Tiny = dict[str, Decoder]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """The target, and models that may draft for it."""
    folder = tmp_path_factory.mktemp("tiny")

    def decoder(name: str, **sizes: int) -> Decoder:
        path = tiny_checkpoint(folder / name, **sizes)  # type: ignore[arg-type]
        return load_decoder(load_checkpoint(path), dtype=torch.float64)

    target = decoder("target", layers=3)
    return {
        "target": target,
        "model": decoder("small", layers=1, hidden=32, seed=1),
        "self:4": quantise(target, Scheme(weights=Grid(bits=4, group=32, symmetric=False))),
        "exit:2": target.first_layers(2),
    }


KINDS: dict[str, Callable[[Tiny], Draft]] = {
    "ngram": lambda tiny: NgramDraft(1, 3),
    **{
        kind: lambda tiny, kind=kind: ModelDraft(kind, CachedModel(tiny[kind], ROOM))  # type: ignore[misc]
        for kind in ("model", "self:4", "exit:2")
    },
}


def outputs(tiny: Tiny, draft: Draft | None, k: int, prompts: list[list[int]], slots: int) -> list[list[int]]:
    """Greedy tokens after each prompt."""
    decoder = SpeculativeDecoder(CachedModel(tiny["target"], ROOM), draft, FixedLength(k))
    lanes = generate(decoder, [Request(tuple(prompt), SETTINGS) for prompt in prompts], slots)
    return [lane.tokens[lane.prompt_tokens :] for lane in lanes]


prompts = st.lists(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=20), min_size=1, max_size=4)


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prompts, st.integers(1, 8), st.integers(1, 4))
def test_greedy_output_is_that_of_plain_decoding(
    tiny: Tiny, kind: str, prompts: list[list[int]], k: int, slots: int
) -> None:
    """Token for token, for every kind of draft, K from 1 to 8, batch from 1 to 4."""
    plain = outputs(tiny, None, 0, prompts, 1)

    assert outputs(tiny, KINDS[kind](tiny), k, prompts, slots) == plain


@pytest.mark.parametrize("kind", ["self:4", "exit:2"])
def test_a_draft_made_of_the_target_is_accepted_more_often_than_chance(tiny: Tiny, kind: str) -> None:
    """Fewer bits or fewer layers of the same weights agree far more often than one token in the vocabulary would."""
    decoder = SpeculativeDecoder(CachedModel(tiny["target"], ROOM), KINDS[kind](tiny), FixedLength(2))
    lanes = generate(decoder, [Request((5, 6, place), SETTINGS) for place in range(8)], 4)
    first = [lane.counts.positions[0] for lane in lanes]

    assert sum(each.accepted for each in first) / sum(each.reached for each in first) > 10 / VOCABULARY


def test_a_long_prompt_is_computed_by_chunks(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt of several chunks gives the logits that one pass over it gives."""
    prompt = [(7 * place) % VOCABULARY for place in range(450)]
    logits = []
    for chunk_tokens in (512, 100, 64):
        monkeypatch.setattr("servewise.engine.speculative.cached_model.PROMPT_CHUNK_TOKENS", chunk_tokens)
        cached = CachedModel(tiny["target"], 512)
        assert cached.admit(1, 480)
        logits.append(cached.prefill(1, prompt, wanted=1))

    torch.testing.assert_close(logits[1], logits[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(logits[2], logits[0], rtol=0, atol=1e-12)
