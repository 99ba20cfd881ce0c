"""The survey on a machine with a virtual clock and a ridge: what it predicts is what it measures, the turn included."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch")

import torch
from tests.engine.speculative.fake import HistoryModel

from servewise.engine.decoder.decoder import Decoder
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.speculative.cached_model import CachedModel
from servewise.engine.speculative.decoder import Request, SpeculativeDecoder, generate
from servewise.engine.speculative.draft_length import FixedLength
from servewise.engine.step import KvCache, StepInput
from servewise.probe.speculate.acceptance import Replays, judge_every_token, replayed
from servewise.probe.speculate.costs import batch_costs
from servewise.probe.speculate.draft_spec import make_draft, parse_draft
from servewise.probe.speculate.journal import Journal
from servewise.probe.speculate.prediction import predicted, turn_to_loss
from servewise.probe.speculate.speed import paired_speedup
from servewise.probe.speculate.stopwatch import Stopwatch
from servewise.probe.speculate.survey import Findings, Scope, Survey

torch.set_num_threads(1)
RIDGE = 7  # tokens a step from which it is compute-bound, as on a CPU of 60 GB/s and 443 GFLOP/s in bf16
BATCHES = (1, 8, 32)
PROMPTS = [(1, 2, 1, 2, place % 7, 1, 2) for place in range(12)]

SCOPE = Scope(
    max_k=4,
    batches=BATCHES,
    max_tokens=40,
    temperature=0.0,
    repeats=1,
    speed_prompts=12,
    acceptance_only=False,
    seed=0,
)


class Clock:
    """Seconds that only a model moves."""

    def __init__(self) -> None:
        self.now = 0.0


class RooflineModel(HistoryModel):
    """A step of T new tokens takes max(1, T / ridge) on the clock, and a draft's ``share`` of it."""

    device = torch.device("cpu")

    def __init__(self, clock: Clock, noise: float = 0.0, share: float = 1.0) -> None:
        super().__init__(noise)
        self._clock, self._share = clock, share

    def step(self, step: StepInput, cache: KvCache) -> torch.Tensor:
        self._clock.now += self._share * max(1.0, len(step.tokens_T) / RIDGE)
        return super().step(step, cache)


def survey(draft: str, make: Callable[[Clock], HistoryModel | None]) -> Findings:
    """All of it, on the virtual clock."""
    clock = Clock()
    target, model = RooflineModel(clock), make(clock)
    stopwatch = Stopwatch(lambda: clock.now, lambda: 0.0, on_core=True)
    return Survey(
        as_decoder(target), parse_draft(draft), as_decoder(model), PROMPTS, SCOPE, Journal(None, {}), stopwatch
    ).run()


def as_decoder(model: HistoryModel | None) -> Decoder:
    """The fake has what the survey asks of a decoder: config, device, cache and step."""
    return model  # type: ignore[return-value]


DRAFTS: dict[str, Callable[[Clock], HistoryModel | None]] = {
    "ngram": lambda clock: None,
    "a small model": lambda clock: RooflineModel(clock, noise=0.5, share=0.1),
}


@pytest.mark.parametrize("draft", sorted(DRAFTS))
def test_predicted_speedups_are_measured_and_turn_to_loss_beyond_the_ridge(draft: str) -> None:
    """Every K and batch within 6% of the prediction; a gain at one stream, a loss at 32, and the turn between."""
    findings = survey(draft, DRAFTS[draft])
    replays = Replays(findings.replies, 4)
    both: dict[str, list[tuple[int, float]]] = {"predicted": [], "measured": []}
    for batch in BATCHES:
        timed = replays.total(SCOPE.timed(batch, len(PROMPTS)))
        rows = predicted(timed, batch_costs(batch, findings.rounds[batch], 4))
        for row in rows:
            measured, _ = paired_speedup(findings.speeds[batch, row.k], findings.speeds[batch, 0])
            assert measured == pytest.approx(row.speedup, rel=0.06), (batch, row)
            if row.k == 4:
                both["predicted"].append((batch, row.speedup))
                both["measured"].append((batch, measured))

    for speedups in both.values():
        assert speedups[0][1] > 1.2
        assert speedups[-1][1] < 0.8
        assert turn_to_loss(4, speedups) is not None


@pytest.mark.parametrize("draft", sorted(DRAFTS))
@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_replay_is_the_run(draft: str, k: int) -> None:
    """Judged at every token, any K is replayed exactly: the counts of a run at that K, position by position."""
    make = DRAFTS[draft]
    requests = [Request(prompt, SamplingSettings(temperature=0.0, max_tokens=30)) for prompt in PROMPTS[:4]]

    def decoder(length: int) -> SpeculativeDecoder:
        spec, model = parse_draft(draft), as_decoder(make(Clock()))
        drafts = make_draft(spec, model, 1024)
        return SpeculativeDecoder(CachedModel(HistoryModel(), 1024), drafts, FixedLength(length))

    replies = judge_every_token(decoder(0), requests, 4)
    lanes = generate(decoder(k), requests, 2)

    assert [replayed(reply, k) for reply in replies] == [lane.counts for lane in lanes]


def test_k_by_measured_acceptance_never_loses_much_at_any_batch() -> None:
    """Beyond the ridge it stops drafting: within 5% of plain decoding where fixed K loses; a gain at one stream."""
    findings = survey("ngram", DRAFTS["ngram"])
    gains = {batch: paired_speedup(findings.adaptive[batch], findings.speeds[batch, 0])[0] for batch in BATCHES}

    assert gains[1] > 1.1
    assert all(gain > 0.95 for gain in gains.values())
