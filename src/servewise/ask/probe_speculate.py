"""Does speculation pay on these prompts, with this draft, on this machine: acceptance, costs, predicted, measured."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from servewise.answer import Answer
from servewise.ask.numbers import finite, whole, wholes
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.engine.checkpoint import Checkpoint, load_checkpoint
from servewise.engine.decoder.decoder import Decoder
from servewise.engine.decoder.load import load_decoder
from servewise.errors import InputError
from servewise.probe.ops.machine import Machine, this_machine
from servewise.probe.ops.operation import dtype_named
from servewise.probe.speculate.acceptance import FEWEST_PROMPTS
from servewise.probe.speculate.costs import batch_costs, disturbed_share
from servewise.probe.speculate.draft_spec import SELF, DraftSpec, draft_model, is_emulated, parse_draft
from servewise.probe.speculate.journal import Journal
from servewise.probe.speculate.prompts import Prompt, encode_prompts, read_prompts, refuse_long
from servewise.probe.speculate.result import survey_result
from servewise.probe.speculate.speed import identical_share
from servewise.probe.speculate.stopwatch import stopwatch_for
from servewise.probe.speculate.survey import Findings, Scope, Survey
from servewise.version import __version__

Progress = Callable[[int, int], None]
MOST_K, MOST_BATCH, MOST_PROMPTS, MOST_COMPARED = 32, 512, 10_000, 32
SHARE = "draft and target must share their tokenizer"
DISTURBED_SHARE = 0.5


def probe_speculate(
    model: str,
    *,
    draft: str,
    prompts: str | Path,
    max_k: int = 8,
    batch: int | Iterable[int] = (1, 8),
    max_tokens: int = 64,
    temperature: float = 0.0,
    repeats: int = 3,
    speed_prompts: int = 8,
    acceptance_only: bool = False,
    dtype: str = "bfloat16",
    device: str = "cpu",
    threads: int | None = None,
    seed: int = 0,
    resume: str | Path | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Acceptance by position of ``draft`` on ``prompts``; then costs, predicted and measured speed-up for each K.

    ``draft``: ``ngram`` (or ``ngram:MIN-MAX``), ``self:BITS``, ``exit:LAYERS``, or a model. Every prompt is continued
    once by up to ``max_tokens``, a draft of ``max_k`` judged at each token; rounds are then timed at each ``batch`` and
    K on their own. The prediction made from both (for all prompts, and ``timed`` for those that are run) is set beside
    runs of ``speed_prompts`` prompts or more, each paired with plain decoding in every one of ``repeats``. ``resume``
    names a file of JSON lines that keeps what was measured. Sets the thread count.
    """
    scope = Scope(
        max_k=whole(max_k, "max_k", most=MOST_K),
        batches=tuple(sorted(whole(each, "batch", most=MOST_BATCH) for each in wholes(batch, "batch"))),
        max_tokens=whole(max_tokens, "max_tokens", least=max_k + 2, most=100_000),
        temperature=_temperature(temperature),
        repeats=whole(repeats, "repeats", most=100),
        speed_prompts=whole(speed_prompts, "speed_prompts", most=MOST_PROMPTS),
        acceptance_only=acceptance_only,
        seed=whole(seed, "seed", least=0),
    )
    spec, machine = parse_draft(draft), this_machine(device, threads)
    texts = read_prompts(Path(prompts))
    if len(texts) > MOST_PROMPTS:
        raise InputError(f"holds {len(texts):,} prompts, more than {MOST_PROMPTS:,}", where=str(prompts), hint="cut it")
    checkpoint = load_checkpoint(model)
    tokens = encode_prompts(texts, checkpoint.tokenizer())
    refuse_long(tokens, checkpoint.config.max_context_tokens, str(prompts))
    target = load_decoder(checkpoint, dtype=dtype_named(dtype), device=device)
    small = draft_model(spec, target, lambda name: _other(name, texts, checkpoint, target.dtype, device))
    journal = Journal(None if resume is None else Path(resume), _question(model, spec, scope, dtype, machine, tokens))
    stopwatch = stopwatch_for(machine)
    findings = Survey(target, spec, small, tokens, scope, journal, stopwatch).run(progress)
    costs = {lanes: batch_costs(lanes, found, scope.max_k) for lanes, found in findings.rounds.items()}
    return Answer(
        command="probe-speculate",
        conditions=_conditions(target, checkpoint.stored, spec, scope, machine, dtype, tokens, Path(prompts).name),
        result=survey_result(spec, scope, findings, costs),
        caveats=_caveats(
            spec, target.dtype, checkpoint.stored, findings, greedy=scope.temperature == 0, on_core=stopwatch.on_core
        ),
    )


def _other(name: str, texts: Sequence[Prompt], target: Checkpoint, dtype: torch.dtype, device: str) -> Decoder:
    """The draft model called ``name``; raises InputError where its tokens are not the target's."""
    checkpoint = load_checkpoint(name)
    plain = [each if isinstance(each, str) else each[-1]["content"] for each in texts[:MOST_COMPARED]]
    if encode_prompts(plain, checkpoint.tokenizer()) != encode_prompts(plain, target.tokenizer()):
        raise InputError("reads the prompts as other tokens than the target does", where=name, hint=SHARE)
    return load_decoder(checkpoint, dtype=dtype, device=device)


def _temperature(value: float) -> float:
    if finite(value, "temperature") < 0:
        raise InputError(f"must be 0 (greedy) or more, not {value!r}", where="temperature")
    return float(value)


def _question(
    model: str, spec: DraftSpec, scope: Scope, dtype: str, machine: Machine, tokens: Sequence[tuple[int, ...]]
) -> dict[str, Any]:
    """What a journal must be of, to be gone on with; how many repeats and which batches may change."""
    return {
        "model": model,
        "draft": spec.text,
        "dtype": dtype,
        "machine": str(machine),
        "prompts_sha256": hashlib.sha256(repr(tokens).encode()).hexdigest(),
        "max_k": scope.max_k,
        "max_tokens": scope.max_tokens,
        "temperature": scope.temperature,
        "speed_prompts": scope.speed_prompts,
        "slots": max(scope.batches),
        "seed": scope.seed,
    }


def _conditions(
    target: Decoder,
    stored: str,
    spec: DraftSpec,
    scope: Scope,
    machine: Machine,
    dtype: str,
    tokens: Sequence[tuple[int, ...]],
    workload: str,
) -> Conditions:
    lengths = sorted(map(len, tokens))
    chosen = "greedy" if scope.temperature == 0 else f"temperature {scope.temperature:g}"
    return Conditions(
        hardware=f"1 x {machine}",
        load=f"batch {', '.join(map(str, scope.batches))}",
        lengths=f"prompts of {lengths[0]} to {lengths[-1]} tokens (median {median(lengths):g}), "
        f"replies of up to {scope.max_tokens}",
        precision=f"{dtype} (checkpoint in {stored})",
        model=target.config.name,
        engine=f"servewise, PyTorch {torch.__version__}",
        policy=f"speculative, draft {spec.text}, {chosen}",
        workload=f"{len(tokens)} prompts of {workload}",
        seeds=(scope.seed,),
        version=__version__,
    )


def _caveats(
    spec: DraftSpec, dtype: torch.dtype, stored: str, findings: Findings, *, greedy: bool, on_core: bool
) -> tuple[Caveat, ...]:
    found = []
    if is_emulated(spec, dtype):
        message = f"{spec.text} has the values of its bits but no kernel here: it costs what the target costs"
        found.append(Caveat("emulated-draft", message, "self:8 or self:4 in bfloat16 run packed"))
    if spec.kind == SELF and stored.upper().startswith(("Q", "IQ")):
        message = f"the checkpoint's own weights were {stored}: a draft of like bits is nearly the target, and too good"
        found.append(Caveat("quantised-checkpoint", message, "take a checkpoint that was never quantised"))
    if len(findings.replies) < FEWEST_PROMPTS:
        message = f"{len(findings.replies)} prompts are too few for an interval of the acceptance"
        found.append(Caveat("few-prompts", message, "give at least 20"))
    shares = [disturbed_share(visits) for visits in findings.rounds.values()]
    if shares and max(shares) > DISTURBED_SHARE:
        message = f"other programs held up {max(shares):.0%} of the timed rounds"
        found.append(Caveat("disturbed", message, "measure on an idle machine, or with --threads 1"))
    if on_core and findings.rounds:
        message = "times are those on the core: what the one thread waited for it, others being there, is taken off"
        found.append(Caveat("time-on-core", message, "on an idle machine the two are the same"))
    if greedy:
        found += _ties(findings)
    return tuple(found)


def _ties(findings: Findings) -> list[Caveat]:
    """Outputs that differ from plain decoding's though the rule keeps them: rounding, where two tokens are as good."""
    plain = {lanes: parts for (lanes, k), parts in findings.speeds.items() if k == 0}
    shares = [identical_share(parts, plain[lanes]) for (lanes, k), parts in findings.speeds.items()]
    if not shares or min(shares) == 1:
        return []
    message = (
        f"down to {min(shares):.0%} of outputs are plain decoding's token for token at some K: near-ties round apart"
    )
    return [Caveat("near-ties", message, "compare in float64 for exactness")]
