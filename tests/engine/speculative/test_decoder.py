"""Decoding by drafts against plain decoding, on a fake model whose logits depend on every cached token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from tests.engine.speculative.fake import VOCABULARY, HistoryModel

from servewise.engine.sampling.penalties import History
from servewise.engine.sampling.probabilities import probabilities
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.speculative.cached_model import CachedModel
from servewise.engine.speculative.decoder import Request, SpeculativeDecoder, generate
from servewise.engine.speculative.draft_length import DraftLength, FixedLength, MeasuredLength
from servewise.engine.speculative.lane import Draft
from servewise.engine.speculative.model_draft import ModelDraft
from servewise.engine.speculative.ngram import NgramDraft
from servewise.engine.speculative.round import step_columns
from servewise.errors import InputError, RunFailed

torch.set_num_threads(1)  # tensors of seven numbers
ROOM = 4096
Drafts = Callable[[], Draft]
GREEDY = SamplingSettings(temperature=0.0, max_tokens=24, ignore_end=True)


def model_draft(noise: float) -> Draft:
    """The target with noise on its logits."""
    return ModelDraft("small", CachedModel(HistoryModel(noise), ROOM, 4))


DRAFTS: dict[str, Drafts] = {
    "near": lambda: model_draft(0.3),
    "far": lambda: model_draft(3.0),
    "same": lambda: model_draft(0.0),
    "ngram": lambda: NgramDraft(1, 3),
}


def decoder(draft: Draft | None, k: int = 4, length: DraftLength | None = None) -> SpeculativeDecoder:
    """The fake target with ``draft``."""
    return SpeculativeDecoder(CachedModel(HistoryModel(), ROOM, 4), draft, length or FixedLength(k))


def outputs(decoder: SpeculativeDecoder, requests: list[Request], slots: int) -> list[list[int]]:
    """Each request's output tokens."""
    return [lane.tokens[lane.prompt_tokens :] for lane in generate(decoder, requests, slots)]


prompts = st.lists(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=9), min_size=1, max_size=5)


@settings(max_examples=40, deadline=None)
@given(prompts, st.sampled_from(sorted(DRAFTS)), st.integers(1, 8), st.integers(1, 4))
def test_greedy_output_is_that_of_plain_decoding(prompts: list[list[int]], kind: str, k: int, slots: int) -> None:
    """Whatever the draft, K and batch: token for token what the model alone gives, computed without any cache."""
    requests = [Request(tuple(prompt), GREEDY) for prompt in prompts]

    assert outputs(decoder(DRAFTS[kind](), k), requests, slots) == [alone(prompt) for prompt in prompts]


def alone(prompt: list[int]) -> list[int]:
    """Greedy tokens from whole histories."""
    model, tokens = HistoryModel(), list(prompt)
    for _ in range(GREEDY.max_tokens):
        tokens.append(int(model.logits(tokens).argmax()))
    return tokens[len(prompt) :]


@pytest.mark.parametrize("kind", sorted(DRAFTS))
def test_a_lanes_sampled_output_does_not_depend_on_the_others(kind: str) -> None:
    """The same request with the same seed draws the same tokens alone and among others."""
    mine = Request((1, 2, 3), SamplingSettings(max_tokens=20, seed=7))
    others = [Request((4, place), SamplingSettings(max_tokens=9 + place, seed=place)) for place in range(4)]

    assert outputs(decoder(DRAFTS[kind]()), [mine], 1)[0] == outputs(decoder(DRAFTS[kind]()), [*others, mine], 3)[-1]


PREFIXES = ((1, 2, 1, 2), (3, 4, 3), (5,), (0, 6, 2, 0, 6))


@pytest.mark.parametrize(
    ("kind", "sampling"),
    [
        ("near", {}),
        ("far", {}),
        ("ngram", {}),
        ("near", {"temperature": 0.7, "top_k": 4}),
        ("far", {"presence_penalty": 1.0}),
    ],
)
def test_sampled_output_has_the_targets_exact_distribution(kind: str, sampling: dict[str, float]) -> None:
    """The first three tokens come as often as the target's probabilities, multiplied out, say, over many prefixes."""
    assert fit(DRAFTS[kind](), sampling) > 1e-3


def test_the_same_test_finds_a_rule_without_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused tokens drawn from the target itself, at the same size of sample, are found out."""
    monkeypatch.setattr("servewise.engine.speculative.rule.residual", lambda p_V, q_V, token: p_V)

    assert fit(DRAFTS["far"](), {}) < 1e-3


def test_the_same_test_finds_a_draft_taken_on_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that keeps every drafted token, at the same size of sample, is found out."""
    monkeypatch.setattr("servewise.engine.speculative.rule._kept", lambda p_RV, proposal, u_K: len(proposal.tokens))

    assert fit(DRAFTS["far"](), {}) < 1e-3


def fit(draft: Draft, sampling: dict[str, float], count: int = 150) -> float:
    """The p-value of the first three tokens after each prefix against the target's exact probabilities."""
    settings = SamplingSettings(max_tokens=4, ignore_end=True, **sampling)  # type: ignore[arg-type]
    statistic, degrees = 0.0, 0
    tokens = outputs(decoder(draft, 3), [Request(each, settings) for each in PREFIXES for _ in range(count)], 50)
    for place, prefix in enumerate(PREFIXES):
        counts = Counter(tuple(each[:3]) for each in tokens[place * count : (place + 1) * count])
        exact = {key: chance * count for key, chance in exact_chances(prefix, settings).items()}
        often = [key for key, expected in exact.items() if expected >= 5]
        cells = [(counts[key], exact[key]) for key in often]
        cells.append((count - sum(counts[key] for key in often), count - sum(exact[key] for key in often)))
        statistic += sum((seen - expected) ** 2 / expected for seen, expected in cells if expected > 0)
        degrees += len(cells) - 1
    return float(chi2.sf(statistic, degrees))


def exact_chances(prefix: tuple[int, ...], settings: SamplingSettings) -> dict[tuple[int, ...], float]:
    """Of every three tokens after ``prefix``, by the target's distribution after each history."""
    model = HistoryModel()
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(3):
        grown: dict[tuple[int, ...], float] = {}
        for tokens, chance in found.items():
            history = History([*prefix, *tokens], len(prefix))
            row_V = probabilities(model.logits(list(history.tokens))[None], settings, [history])[0].tolist()
            grown |= {(*tokens, token): chance * one for token, one in enumerate(row_V) if one}
        found = grown
    return found


def test_counts_by_position_add_up_to_the_tokens() -> None:
    """Tokens are one for the prompt and one a verification, plus the accepted; each position needs the one before."""
    run = decoder(DRAFTS["near"](), 4)
    lane = generate(run, [Request((1, 2), GREEDY)], 1)[0]
    positions = lane.counts.positions
    rounds = [each for each in run.rounds if not each.prompt_tokens]

    assert GREEDY.max_tokens == 1 + len(rounds) + sum(each.accepted for each in positions)
    assert all(later.reached <= before.accepted for before, later in pairwise(positions))
    assert all(each.accepted <= each.reached <= each.offered <= each.asked for each in positions)


def test_a_perfect_draft_is_always_accepted() -> None:
    """The target as its own draft: every token kept, K + 1 tokens a round, so ceil(23 / 5) rounds after the first."""
    run = decoder(DRAFTS["same"](), 4)
    generate(run, [Request((1, 2), GREEDY)], 1)

    assert len([each for each in run.rounds if not each.prompt_tokens]) == 5
    assert sum(each.emitted for each in run.rounds) == GREEDY.max_tokens


def test_an_end_token_ends_a_lane_within_a_verification() -> None:
    """Tokens behind an end token are dropped, as plain decoding never makes them."""
    end = alone([1, 2, 3])[7]
    request = Request((1, 2, 3), SamplingSettings(temperature=0.0, max_tokens=60))

    def run(draft: Draft | None) -> list[int]:
        target = CachedModel(HistoryModel(end_tokens=(end,)), ROOM, 4)
        return outputs(SpeculativeDecoder(target, draft, FixedLength(6)), [request], 1)[0]

    assert run(DRAFTS["near"]()) == run(None)
    assert run(None)[-1] == end
    assert len(run(None)) < 60


def test_a_lane_with_broken_logits_fails_alone() -> None:
    """Not-a-number logits end that lane with its error; the others' tokens are as without it."""
    sound = [Request((1, 2), GREEDY), Request((3, 4), GREEDY)]

    def run(requests: list[Request]) -> list[tuple[list[int], str | None]]:
        target = CachedModel(HistoryModel(broken=6), ROOM, 4)
        lanes = generate(SpeculativeDecoder(target, NgramDraft(1, 2), FixedLength(3)), requests, 3)
        return [(lane.tokens, lane.error) for lane in lanes]

    good = run(sound)
    mixed = run([sound[0], Request((5, 6), GREEDY), sound[1]])
    assert "finite" in str(mixed[1][1])
    assert [mixed[0], mixed[2]] == good


def test_a_draft_that_breaks_costs_only_its_drafts() -> None:
    """Where the draft's logits are not numbers it proposes nothing more; the target's tokens are as ever."""
    small = ModelDraft("small", CachedModel(HistoryModel(broken=6), ROOM, 4))
    requests = [Request((1, place), GREEDY) for place in range(VOCABULARY)]

    assert outputs(decoder(small, 3), requests, 3) == [alone([1, place]) for place in range(VOCABULARY)]


def test_every_block_is_free_again() -> None:
    """After a run, target and draft hold no block."""
    target, small = (CachedModel(HistoryModel(noise), 256, 4) for noise in (0.0, 0.5))
    before = target.free_blocks, small.free_blocks
    requests = [Request((1, place), GREEDY) for place in range(7)]
    generate(SpeculativeDecoder(target, ModelDraft("small", small), FixedLength(3)), requests, 4)

    assert (target.free_blocks, small.free_blocks) == before


def test_a_full_draft_cache_makes_requests_wait_and_not_fail() -> None:
    """A draft with room for one sequence serves four slots one after another, with the same tokens."""
    small = CachedModel(HistoryModel(0.5), 32, 4)
    requests = [Request((1, place), GREEDY) for place in range(4)]
    run = decoder(ModelDraft("small", small), 3)

    assert outputs(run, requests, 4) == [alone([1, place]) for place in range(4)]


def test_what_cannot_run_is_one_clear_line() -> None:
    """An empty or foreign prompt, settings that are not read, and a cache too small are refused."""
    run = decoder(None)
    for prompt in ((), (VOCABULARY,), tuple([1] * 400)):
        with pytest.raises(InputError, match="prompt"):
            run.admit(Request(prompt, GREEDY))
    with pytest.raises(InputError, match="stop strings"):
        run.admit(Request((1,), SamplingSettings(stop=("x",))))
    with pytest.raises(RunFailed, match="too small"):
        generate(SpeculativeDecoder(CachedModel(HistoryModel(), 8, 4)), [Request((1,), GREEDY)], 1)


def test_step_records_hold_every_token_computed() -> None:
    """Summed over steps, decoding sequences plus prefill tokens are what the target computed: prompt, then chunks."""
    run = decoder(DRAFTS["far"](), 4)
    generate(run, [Request((1, 2, 3), GREEDY), Request((4,), GREEDY)], 2)
    steps = step_columns(run.rounds)

    verified = sum(each.lanes + each.offered for each in run.rounds if not each.prompt_tokens)
    assert sum(steps.decode_sequences) + sum(steps.prefill_tokens) == 4 + verified
    assert len(steps) == len(steps.active) == len(run.rounds)


class Flat:
    """Costs without a batch: a draft token costs ``draft`` of a step, a verification ``more`` a drafted token."""

    def __init__(self, draft: float, more: float) -> None:
        self._draft, self._more = draft, more

    def draft_step_s(self, lanes: int) -> float:
        return self._draft

    def verify_s(self, lanes: int, tokens: int) -> float:
        return 1 + self._more * (tokens - 1)


def test_measured_length_drafts_long_where_all_is_accepted_and_not_at_all_where_it_cannot_pay() -> None:
    """A perfect cheap draft goes to max_k; one that costs as much as it can bring goes to 0 and is tried again."""
    cheap = decoder(DRAFTS["same"](), length=MeasuredLength(Flat(0.05, 0.01), max_k=6))
    long = [Request((1, 2), SamplingSettings(temperature=0.0, max_tokens=200, ignore_end=True))]
    generate(cheap, long, 1)
    dear = decoder(DRAFTS["same"](), length=MeasuredLength(Flat(0.5, 1.0), max_k=6))
    generate(dear, long, 1)

    assert [each.k for each in cheap.rounds][-3:] == [6, 6, 6]
    ks = [each.k for each in dear.rounds]
    assert ks.count(0) > 100
    assert 1 <= ks.count(1) <= 4


def test_measured_length_does_not_change_greedy_output() -> None:
    """K that changes from round to round leaves the tokens as they are."""
    run = decoder(DRAFTS["near"](), length=MeasuredLength(Flat(0.1, 0.02), max_k=8))

    assert outputs(run, [Request((1, 2), GREEDY)], 1) == [alone([1, 2])]
