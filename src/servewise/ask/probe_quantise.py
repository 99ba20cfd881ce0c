"""What do fewer bits cost in quality, on a checkpoint of your own and a text of your own?"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from servewise.answer import Answer
from servewise.ask.numbers import positive, whole, wholes
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.engine.checkpoint import Checkpoint, load_checkpoint
from servewise.engine.config import DecoderConfig
from servewise.engine.decoder.load import load_decoder
from servewise.errors import InputError
from servewise.probe.ops.machine import Machine, this_machine
from servewise.probe.quantise.bench import REFERENCE, Bench, Material, cheapest, measure
from servewise.probe.quantise.log import Row, RowLog
from servewise.probe.quantise.passages import built_in, passages, read_text
from servewise.probe.quantise.settings import GRIDS, KEYS, METHODS, TARGETS, Setting, settings_of
from servewise.probe.quantise.tasks import read_tasks
from servewise.study.published import QUANTISATION
from servewise.version import __version__

BITS = (8, 6, 4, 3, 2)
GROUPS = ("channel", "128", "64", "32")
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}
BUILT_IN = "built-in text"
LEAST_SEQUENCES = 8
_PLAIN = re.compile(r"(b?f|fp|float|bfloat)(16|32|64)", re.IGNORECASE)


class Texts(NamedTuple):
    """What is read: the text to judge by, the one to calibrate on, where each is from, and a file of tasks."""

    evaluation: str
    calibration: str
    evaluation_name: str
    calibration_name: str
    task: str | Path | None

    @property
    def digests(self) -> dict[str, str | None]:
        """Each by its content."""
        return {
            "text": _digest(self.evaluation),
            "calibration_text": _digest(self.calibration),
            "task": None if self.task is None else _digest(read_text(self.task)),
        }


def probe_quantise(
    model: str | Path,
    *,
    evaluation: str | Path | None = None,
    calibration: str | Path | None = None,
    task: str | Path | None = None,
    bits: int | Iterable[int] = BITS,
    groups: Iterable[str | int] = GROUPS,
    grids: Iterable[str] = GRIDS,
    methods: Iterable[str] = METHODS,
    targets: Iterable[str] = TARGETS,
    keys: Iterable[str] = KEYS,
    embeddings: bool = False,
    threshold: float = 0.01,
    dtype: str = "float32",
    sequences: int = 16,
    length: int = 256,
    seed: int = 0,
    device: str = "cpu",
    threads: int | None = None,
    resume: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """KL, top-1 agreement and perplexity of ``model`` with fewer bits, on a text, beside the model as it is.

    ``groups`` are ``channel`` or sizes; ``threshold`` is the most KL a position [nats] that the cheapest setting may
    have, at the upper end of its interval. ``evaluation`` and ``calibration`` None are the built-in texts. ``resume``:
    a file of rows as they come; those in it are not measured again. Raises InputError for what cannot be measured.
    """
    positive(threshold, "threshold")
    computed = _dtype(dtype)
    machine, checkpoint = this_machine(device, threads), load_checkpoint(model)
    settings = _settings(targets, bits, groups, grids, methods, keys, checkpoint.config)
    texts = _texts(evaluation, calibration, task)
    material = _material(checkpoint, texts, _length(length, checkpoint), whole(sequences, "sequences", least=2))
    about = {
        "model": f"{checkpoint.config.name} ({checkpoint.stored})",
        **texts.digests,
        "embeddings": embeddings,
        "dtype": dtype,
        "sequences": len(material.passages),
        "length_tokens": length,
        "seed": whole(seed, "seed", least=0),
    }
    log = RowLog(Path(resume) if resume is not None else None, about)
    decoder = load_decoder(checkpoint, dtype=computed, device=device)
    measure(Bench(decoder, material, tables=embeddings, seed=seed), settings, log, progress)
    rows = [log.rows[setting.name] for setting in settings]
    result = _result(about, log.rows[REFERENCE], rows, threshold)
    caveats = tuple(_caveats(checkpoint.stored, rows, result["cheapest"], threshold, len(material.passages)))
    return Answer("probe-quantise", _conditions(about, texts, machine), result, caveats)


def _result(about: Mapping[str, Any], reference: Row, rows: Sequence[Row], threshold: float) -> dict[str, Any]:
    return {
        "reference": reference,
        "reference_perplexity": reference["perplexity"],
        "threshold_kl": threshold,
        "evaluated_tokens": about["sequences"] * about["length_tokens"],
        "embeddings": about["embeddings"],
        "cheapest": cheapest(rows, threshold),
        "study": study_rows(rows),
        "rows": rows,
    }


def _dtype(name: str) -> torch.dtype:
    if name not in DTYPES:
        raise InputError(f"cannot compute in {name!r}", where="dtype", hint=f"one of {', '.join(DTYPES)}")
    return DTYPES[name]


def _length(length: int, checkpoint: Checkpoint) -> int:
    return whole(length, "length", least=2, most=checkpoint.config.max_context_tokens)


def _settings(
    targets: Iterable[str],
    bits: int | Iterable[int],
    groups: Iterable[str | int],
    grids: Iterable[str],
    methods: Iterable[str],
    keys: Iterable[str],
    config: DecoderConfig,
) -> tuple[Setting, ...]:
    widths = tuple(whole(each, "bits", least=2, most=8) for each in wholes(bits, "bits"))
    sizes = tuple(_group(each) for each in groups)
    return settings_of(tuple(targets), widths, sizes, tuple(grids), tuple(methods), tuple(keys), config)


def _group(value: str | int) -> int | None:
    if value == "channel":
        return None
    if not str(value).isdecimal():
        raise InputError(f"{value!r} is no group", where="groups", hint="channel, or a size such as 32")
    return whole(int(value), "groups", least=8)


def _texts(evaluation: str | Path | None, calibration: str | Path | None, task: str | Path | None) -> Texts:
    judged = built_in("evaluation") if evaluation is None else read_text(evaluation)
    other = built_in("calibration") if calibration is None else read_text(calibration)
    return Texts(judged, other, str(evaluation or BUILT_IN), str(calibration or BUILT_IN), task)


def _material(checkpoint: Checkpoint, texts: Texts, length: int, most: int) -> Material:
    tokenizer, task = checkpoint.tokenizer(), texts.task
    return Material(
        passages=passages(texts.evaluation, tokenizer, length=length, most=most, where=texts.evaluation_name),
        calibration=passages(texts.calibration, tokenizer, length=length, most=10**9, where=texts.calibration_name),
        tokenizer=tokenizer,
        tasks=read_tasks(task, tokenizer, checkpoint.config.max_context_tokens) if task is not None else (),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _conditions(about: Mapping[str, Any], texts: Texts, machine: Machine) -> Conditions:
    calibrated = f"gptq calibrated on {texts.calibration_name} (sha256 {about['calibration_text']})"
    return Conditions(
        hardware=str(machine),
        load="teacher forcing; the KV cache read as when decoding token by token",
        lengths=f"{about['sequences']} sequences of {about['length_tokens']} tokens",
        precision=f"{about['dtype']} throughout, but for the one target that a row names",
        model=about["model"],
        engine=f"servewise engine, PyTorch {torch.__version__}",
        workload=f"{texts.evaluation_name} (sha256 {about['text']}), {calibrated}",
        seeds=(about["seed"],),
        version=__version__,
    )


def study_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The study's table on this model: symmetric, nearest, a scale a channel (weights) or a token and head (cache)."""
    found = [(_study_name(row), row) for row in rows]
    return [_study_row(name, row) for name, row in found if name is not None and row["bits"] in QUANTISATION[name]]


def _study_name(row: Row) -> str | None:
    if (row["group"], row["grid"], row["method"]) != ("channel", "symmetric", "rtn"):
        return None
    return {("weights", None): "weights", ("kv", "token"): "KV cache"}.get((row["target"], row["keys"]))


def _study_row(name: str, row: Row) -> dict[str, Any]:
    kl, agreement = QUANTISATION[name][row["bits"]]
    return {
        "target": name,
        "bits": row["bits"],
        "study_kl": float(kl),
        "kl": row["kl"],
        "ci95_kl": row["ci95_kl"],
        "study_top1_agreement": float(agreement),
        "top1_agreement": row["top1_agreement"],
        "ci95_top1_agreement": row["ci95_top1_agreement"],
    }


def _caveats(
    stored: str, rows: Sequence[Row], best: Sequence[Row], threshold: float, sequences: int
) -> Iterator[Caveat]:
    if not _PLAIN.fullmatch(stored):
        message = (
            f"the checkpoint's weights come from {stored}: a grid equal to that one, or whose steps divide its own, "
            "cannot lose, others lose less than on the original weights; the reference is the checkpoint as it is"
        )
        yield Caveat("quantised-checkpoint", message, "probe the original 16-bit checkpoint for figures about weights")
    if sequences < LEAST_SEQUENCES:
        message = f"{sequences} sequences: the intervals are too narrow"
        yield Caveat("few-sequences", message, f"a longer text, or shorter sequences: at least {LEAST_SEQUENCES}")
    named = {row["target"] for row in best}
    for target in dict.fromkeys(row["target"] for row in rows if row["target"] not in named):
        least = min((row["kl"] for row in rows if row["target"] == target and row["kl"] is not None), default=math.nan)
        message = f"no setting of {target} keeps KL under {threshold:g} (the best: {least:.2g})"
        yield Caveat("threshold-missed", message, "more bits, smaller groups, or a higher threshold")
    broken = [row for row in rows if row["kl"] is None]
    if broken:
        yield Caveat("not-finite", f"{len(broken)} settings gave no finite numbers", "leave them out of account")
