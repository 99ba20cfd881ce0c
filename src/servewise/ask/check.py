"""Which of the study's and the field's common mistakes a configuration, a report or a prompt log makes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servewise.answer import Answer
from servewise.ask.names import AcceleratorLike, ModelLike, accelerator_named, model_named
from servewise.caveats import Caveat, unique
from servewise.check.engines.launch import Launch
from servewise.check.engines.options import ENGINES, options_of
from servewise.check.every import Checked, check_text
from servewise.check.finding import SEVERITIES, Severity
from servewise.conditions import Conditions
from servewise.errors import InputError, UnknownName
from servewise.hardware.accelerator import Accelerator
from servewise.modelspec.spec import ModelSpec
from servewise.records.run_directory import HEADER
from servewise.version import __version__

MOST_BYTES = 64_000_000


def check(
    source: str | Path,
    *,
    text: str | None = None,
    model: ModelLike | None = None,
    accelerator: AcceleratorLike | None = None,
    engine: str | None = None,
) -> Answer:
    """The mistakes in the file ``source``: how engines are launched, results, claims, prompts.

    What it holds is told by its content. Read are command lines and configs of vLLM, SGLang, TensorRT-LLM and
    llama.cpp, alone or in shell scripts, compose files, Kubernetes manifests and documents; results of servewise, vLLM
    bench, GuideLLM, AIPerf and llama-benchy; prose with figures; engines' logs; JSONL of messages or prompts.
    ``accelerator``: with it, and with a model that is known (``model``, or the launched one where it is in the
    catalogue or on disk), memory and step times are computed. ``engine`` names that of a config whose keys do not
    tell. ``text`` is checked in the file's place, where given.
    """
    if engine is not None and engine not in ENGINES:
        raise UnknownName("engine", engine, ENGINES, where="engine", hint=f"one of {', '.join(ENGINES)}")
    chip = None if accelerator is None else accelerator_named(accelerator)
    stated = None if model is None else model_named(model)
    known = _Models(stated)
    checked = check_text(
        _read(Path(source)) if text is None else text, model_of=known.of, accelerator=chip, engine=engine
    )
    return Answer(
        command="check",
        conditions=_conditions(checked, chip),
        result=_result(str(source), checked),
        caveats=unique(_caveats(checked, chip, known)),
    )


def fails(answer: Answer, at: Severity) -> bool:
    """Whether ``answer`` has a finding of that severity or worse."""
    counts: Mapping[str, int] = answer.result["counts"]
    return any(counts[each] for each in SEVERITIES[: SEVERITIES.index(at) + 1])


class _Models:
    """The model of a launch: the stated one for all, else the launched one where it is known without a network."""

    def __init__(self, stated: ModelSpec | None) -> None:
        self._stated = stated
        self.unknown: list[str] = []

    def of(self, launch: Launch) -> ModelSpec | None:
        if self._stated is not None or launch.model is None:
            return self._stated
        try:
            return model_named(launch.model)
        except InputError:
            self.unknown.append(launch.model)
            return None


def _read(path: Path) -> str:
    path = path / HEADER if path.is_dir() else path
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"is over {MOST_BYTES // 1_000_000} MB", where=str(path), hint="a part of it")
        text = path.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from None
    if not text.strip():
        raise InputError("is empty", where=str(path), hint="a command line, a config, a report or a prompt log")
    return text


def _result(source: str, checked: Checked) -> dict[str, Any]:
    return {
        "file": source,
        "read": list(checked.content.kinds),
        "launches": [_launch(each) for each in checked.content.launches],
        "prompts": len(checked.content.prompts),
        "findings": [each.to_json() for each in checked.findings],
        "counts": {each: sum(one.severity == each for one in checked.findings) for each in SEVERITIES},
    }


def _launch(launch: Launch) -> dict[str, Any]:
    return {
        "engine": launch.engine,
        "options_of": options_of(launch.engine).version,
        "model": launch.model,
        "where": launch.place.to_json(),
        "options": [each.written for each in launch.given],
    }


def _conditions(checked: Checked, chip: Accelerator | None) -> Conditions:
    models = dict.fromkeys(each.model for each in checked.content.launches if each.model)
    engines = dict.fromkeys(each.engine for each in checked.content.launches)
    return Conditions(
        hardware=chip.title if chip else "an accelerator that is not given",
        load="as launched",
        lengths="lengths as stated",
        precision="precision as stated",
        model=", ".join(models) or None,
        engine=", ".join(f"{each} {options_of(each).version}" for each in engines) or None,
        version=__version__,
    )


def _caveats(checked: Checked, chip: Accelerator | None, known: _Models) -> tuple[Caveat, ...]:
    found = []
    if checked.content.launches and chip is None:
        message = "memory and step times were not checked: no accelerator is given"
        found.append(Caveat("not-sized", message, "name it with --accelerator"))
    for name in dict.fromkeys(known.unknown):
        message = f"{name[:80]} is not in the catalogue: heads and memory were not checked"
        found.append(Caveat("model-not-known", message, "give its config.json with --model"))
    content = checked.content
    if content.kinds == ("text",) and not checked.findings:
        message = "no launch, no figure and no prompt was found in it: read as text without a mistake"
        found.append(Caveat("nothing-read", message, "name the engine of a config with --engine"))
    if content.kinds == ("result",) and not checked.findings:
        message = "read as results; none of a client that is known, or nothing wrong in them"
        found.append(Caveat("results-read", message, "servewise compare reads the same results"))
    return tuple(found)
