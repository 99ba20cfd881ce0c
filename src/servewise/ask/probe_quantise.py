"""What do fewer bits cost in quality, on a checkpoint of your own and a text of your own?"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from servewise import __version__
from servewise.answer import Answer
from servewise.ask.numbers import positive, whole, wholes
from servewise.caveats import Caveat
from servewise.conditions import Conditions
from servewise.errors import InputError
from servewise.study.published import QUANTISATION

Progress = Callable[[int, int], None]

DEFAULT_BITS = (8, 6, 4, 3, 2)
DEFAULT_GROUPS = ("channel", "128", "64", "32")
DTYPES = ("float32", "float64", "bfloat16")
LEAST_SEQUENCES = 8
_PLAIN = re.compile(r"(b?f(loat)?(16|32|64)|fp(16|32|64))", re.IGNORECASE)


def probe_quantise(
    model: str | Path,
    *,
    evaluation: str | Path | None = None,
    calibration: str | Path | None = None,
    task: str | Path | None = None,
    bits: int | Iterable[int] = DEFAULT_BITS,
    groups: Iterable[str | int] = DEFAULT_GROUPS,
    grids: Iterable[str] = ("symmetric", "asymmetric"),
    methods: Iterable[str] = ("rtn", "gptq"),
    targets: Iterable[str] = ("weights", "kv", "activations"),
    keys: Iterable[str] = ("channel", "token"),
    embeddings: bool = False,
    threshold: float = 0.01,
    dtype: str = "float32",
    sequences: int = 16,
    length: int = 256,
    seed: int = 0,
    resume: str | Path | None = None,
    progress: Progress | None = None,
) -> Answer:
    """KL, top-1 agreement and perplexity of ``model`` with fewer bits, on a text, beside the model as it is.

    ``groups`` are ``channel`` or sizes; ``threshold`` is the most KL a position [nats] that the cheapest setting may
    have, at the upper end of its interval. ``evaluation`` and ``calibration`` None are the built-in texts. ``resume``:
    a file of rows as they come; those in it are not measured again. Raises InputError for what cannot be measured.
    """
    torch = _torch()
    from servewise.engine.checkpoint import load_checkpoint
    from servewise.engine.decoder.load import load_decoder
    from servewise.probe.quantise import REFERENCE, Bench, Material, cheapest, measure
    from servewise.probe.quantise_log import RowLog
    from servewise.probe.quantise_settings import settings_of
    from servewise.probe.quantise_task import read_tasks
    from servewise.probe.quantise_text import built_in, passages, read_text

    if dtype not in DTYPES:
        raise InputError(f"cannot compute in {dtype!r}", where="dtype", hint=f"one of {', '.join(DTYPES)}")
    positive(threshold, "threshold")
    whole(sequences, "sequences", least=2)
    whole(seed, "seed", least=0)
    checkpoint = load_checkpoint(model)
    whole(length, "length", least=2, most=checkpoint.config.max_context_tokens)
    settings = settings_of(
        tuple(targets),
        tuple(whole(each, "bits", least=2, most=8) for each in wholes(bits, "bits")),
        tuple(_group(each) for each in groups),
        tuple(grids),
        tuple(methods),
        tuple(keys),
        checkpoint.config,
    )
    text = built_in("evaluation") if evaluation is None else read_text(evaluation)
    other = built_in("calibration") if calibration is None else read_text(calibration)
    tokenizer = checkpoint.tokenizer()
    material = Material(
        passages=passages(text, tokenizer, length=length, most=sequences, where=str(evaluation or "built-in text")),
        calibration=passages(other, tokenizer, length=length, most=10**6, where=str(calibration or "built-in text")),
        tokenizer=tokenizer,
        tasks=read_tasks(task, tokenizer) if task is not None else (),
    )
    about = {
        "model": f"{checkpoint.config.name} ({checkpoint.stored})",
        "text": _digest(text),
        "calibration_text": _digest(other),
        "task": _digest(read_text(task)) if task is not None else None,
        "embeddings": embeddings,
        "dtype": dtype,
        "sequences": len(material.passages),
        "length_tokens": length,
        "seed": seed,
    }
    log = RowLog(Path(resume) if resume is not None else None, about)
    decoder = load_decoder(checkpoint, dtype=getattr(torch, dtype))
    measure(Bench(decoder, material, tables=embeddings, seed=seed), settings, log, progress)
    rows = [log.rows[setting.name] for setting in settings]
    return Answer(
        command="probe-quantise",
        conditions=_conditions(about, str(evaluation or "the built-in evaluation text"), torch.__version__, seed),
        result={
            "reference": log.rows[REFERENCE],
            "reference_perplexity": log.rows[REFERENCE]["perplexity"],
            "threshold_kl": threshold,
            "tokens": len(material.passages) * length,
            "embeddings": embeddings,
            "cheapest": cheapest(rows, threshold),
            "study": study_rows(rows),
            "rows": rows,
        },
        caveats=tuple(_caveats(checkpoint.stored, rows, cheapest(rows, threshold), threshold, len(material.passages))),
    )


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise InputError("needs PyTorch", where="probe", hint="pip install 'servewise[engine]'") from None
    return torch


def _group(value: str | int) -> int | None:
    if value == "channel":
        return None
    try:
        return whole(int(value), "groups", least=8)
    except ValueError:
        raise InputError(f"{value!r} is no group", where="groups", hint="channel, or a size such as 32") from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _conditions(about: Mapping[str, Any], evaluation: str, torch_version: str, seed: int) -> Conditions:
    return Conditions(
        hardware="this machine's CPU (quality does not depend on it)",
        load="teacher forcing; KV settings as when decoding token by token",
        lengths=f"{about['sequences']} sequences of {about['length_tokens']} tokens",
        precision=f"{about['dtype']} throughout but for the one target named in each row",
        model=about["model"],
        engine=f"servewise's reference engine, PyTorch {torch_version}",
        workload=f"{evaluation} (sha256 {about['text']})",
        seeds=(seed,),
        version=__version__,
    )


def study_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The study's table on this model: symmetric, nearest, a scale a channel (weights) or a token and head (cache)."""
    found = {_study_key(row): row for row in rows if _study_key(row) is not None}
    return [_study_row(target, bits, found[target, bits]) for target, bits in found if bits in QUANTISATION[target]]


def _study_key(row: Mapping[str, Any]) -> Any:
    if (row["group"], row["grid"], row["method"]) != ("channel", "symmetric", "rtn"):
        return None
    names = {("weights", None): "weights", ("kv", "token"): "KV cache"}
    name = names.get((row["target"], row["keys"]))
    return (name, row["bits"]) if name else None


def _study_row(target: str, bits: int, row: Mapping[str, Any]) -> dict[str, Any]:
    kl, agreement = QUANTISATION[target][bits]
    return {
        "target": target,
        "bits": bits,
        "study_kl": float(kl),
        "kl": row["kl"],
        "ci95_kl": row["ci95_kl"],
        "study_top1_agreement": float(agreement),
        "top1_agreement": row["top1_agreement"],
        "ci95_top1_agreement": row["ci95_top1_agreement"],
    }


def _caveats(
    stored: str, rows: Sequence[Mapping[str, Any]], best: Sequence[Mapping[str, Any]], threshold: float, sequences: int
) -> Iterable[Caveat]:
    if not _PLAIN.fullmatch(stored):
        message = (
            f"the checkpoint's weights come from {stored}: a grid equal to that one cannot lose, and finer ones lose "
            "less than they would on the original weights; the reference is the checkpoint, not the model it came from"
        )
        yield Caveat("quantised-checkpoint", message, "probe the original 16-bit checkpoint for figures about weights")
    if sequences < LEAST_SEQUENCES:
        message = f"{sequences} sequences: the intervals are too narrow"
        yield Caveat("few-sequences", message, f"a longer text, or shorter sequences: at least {LEAST_SEQUENCES}")
    named = {row["target"] for row in best}
    for target in dict.fromkeys(row["target"] for row in rows if row["target"] not in named):
        least = min(row["ci95_kl"][1] for row in rows if row["target"] == target)
        message = f"no setting of {target} keeps KL under {threshold:g} (the best: {least:.2g})"
        yield Caveat("threshold-missed", message, "more bits, smaller groups, or a higher threshold")
    broken = [row for row in rows if not math.isfinite(row["kl"])]
    if broken:
        yield Caveat("not-finite", f"{len(broken)} settings gave no finite number", "take them out of the comparison")
