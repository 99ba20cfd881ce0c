"""Which coefficients do these runs tell of a server, how surely, and how well do they predict what they did not see?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, Unpack

from servewise.answer import Answer
from servewise.ask.deploying import Options, conditions_of, deploy
from servewise.ask.names import AcceleratorLike, ModelLike
from servewise.ask.numbers import finite, whole
from servewise.ask.serving import WINDOW_S, PolicyOptions, capacity_for_serving, describe, policy_named
from servewise.atomic import replace_whole
from servewise.batching.policies import Policy
from servewise.calibrate.by_requests import calibrate_on_requests
from servewise.calibrate.by_steps import StepRun, calibrate_on_steps
from servewise.calibrate.calibrated import Calibrated
from servewise.calibrate.holdout import Holdout
from servewise.calibrate.observed_steps import observed_steps
from servewise.calibrate.replay import Served, replay_of
from servewise.caveats import Caveat, unique
from servewise.deployment.deployment import Deployment
from servewise.errors import InputError
from servewise.metrics.latency import completed_by_schedule, ints
from servewise.records.begun import CUT
from servewise.records.run_directory import HEADER, RunRecord, read_run
from servewise.steptime.calibration import Calibration, setting_of
from servewise.steptime.calibration_file import calibration_toml
from servewise.steptime.coefficients import ValidRange
from servewise.steptime.server_coefficients import COEFFICIENTS
from servewise.version import __version__

HOLDOUT, MOST_HOLDOUT = 0.2, 0.5
MOST_RUNS = 200
FAR_OFF = 0.15  # held-out median error from which the form itself is doubted


def calibrate(
    runs: str | Path | Iterable[str | Path],
    model: ModelLike,
    accelerator: AcceleratorLike | None = None,
    *,
    holdout: float = HOLDOUT,
    output: str | Path | None = None,
    policy: str = "continuous",
    slots: int | None = None,
    window: float = WINDOW_S,
    reserve: bool = False,
    chunked: bool = True,
    seed: int = 0,
    **options: Unpack[Options],
) -> Answer:
    """Fit the coefficients of a server to ``runs`` of it: run directories, or folders that hold some.

    Runs that all hold step records are fitted to those, others to their requests, replayed through the simulator: then
    ``policy``, ``slots``, ``window``, ``reserve``, ``chunked`` and the limits in ``options`` say how the server
    batches, as in ``simulate`` (llama.cpp: ``slots`` as its --parallel, ``max_batched_tokens`` as its --batch-size;
    vLLM: --max-num-seqs, --max-num-batched-tokens). ``holdout`` is the share of each run's time that is kept out of
    the fit (0 to 0.5). ``output``: the TOML file that predicting commands take as ``estimator``. Coefficients that the
    runs cannot tell are null, with what to measure next.
    """
    deployment = deploy(model, accelerator, **options)
    share = finite(holdout, "holdout")
    if not 0 <= share <= MOST_HOLDOUT:
        raise InputError(f"must be from 0 to {MOST_HOLDOUT}, not {holdout!r}", where="holdout")
    target = None if output is None else _target(Path(output))
    whole(seed, "seed", least=0)
    choices = PolicyOptions(slots=slots, window_s=window, reserve=reserve, chunked=chunked)
    batching = policy_named(policy, deployment, choices)
    known = runs_in(runs)
    if all(record.steps is not None and len(record.steps) for _, record in known):
        found = _on_steps(deployment, known, Holdout(share), seed)
        policies = tuple(dict.fromkeys(record.conditions.policy or "" for _, record in known))
    else:
        found = _on_requests(deployment, batching, known, Holdout(share), seed)
        policies = (describe(batching),)
    calibration = calibration_of(deployment, found, [path.name for path, _ in known], policies)
    if target is not None:
        _write(target, calibration_toml(calibration))
    return Answer(
        command="calibrate",
        conditions=conditions_of(
            deployment,
            load="; ".join(dict.fromkeys(record.conditions.load for _, record in known)),
            lengths=_lengths([record for _, record in known]),
            estimator=f"calibrated ({found.source})",
        ),
        result=_result(found, calibration, target),
        caveats=unique(_caveats(found, calibration) + _doubts([record for _, record in known])),
    )


def runs_in(runs: str | Path | Iterable[str | Path]) -> list[tuple[Path, RunRecord]]:
    """The runs that the given directories are or hold, in order of name; InputError where there is none."""
    given = [runs] if isinstance(runs, (str, Path)) else list(runs)
    paths = [path for each in given for path in _directories(Path(each))]
    if not paths:
        raise InputError("no run is given", where="runs", hint="name run directories")
    if len(paths) > MOST_RUNS:
        raise InputError(f"{len(paths)} runs are too many", where="runs", hint=f"at most {MOST_RUNS}")
    return [(path, read_run(path)) for path in dict.fromkeys(paths)]


def _directories(path: Path) -> list[Path]:
    if (path / HEADER).exists() or not path.is_dir():
        return [path]
    found = sorted({each.parent for depth in ("*", "*/*") for each in path.glob(f"{depth}/{HEADER}")})
    found = [each for each in found if CUT not in each.parts[len(path.parts) :]]  # what was cut off is in no figure
    if not found:
        raise InputError("holds no run", where=str(path), hint=f"a run directory holds {HEADER}")
    return found


def _on_steps(
    deployment: Deployment, known: Sequence[tuple[Path, RunRecord]], holdout: Holdout, seed: int
) -> Calibrated:
    window = deployment.model.read_window_tokens
    runs, dropped = [], 0
    for path, record in known:
        assert record.steps is not None
        steps, lost = observed_steps(record.requests, record.steps, window)
        runs.append(StepRun(load=_named(path, record, known), steps=steps))
        dropped += lost
    return calibrate_on_steps(deployment, runs, holdout, dropped=dropped, seed=seed)


def _on_requests(
    deployment: Deployment, policy: Policy, known: Sequence[tuple[Path, RunRecord]], holdout: Holdout, seed: int
) -> Calibrated:
    capacity = capacity_for_serving(deployment)
    served = Served(policy=policy, blocks=capacity.blocks, block_tokens=capacity.block_tokens)
    replays = [replay_of(record, _named(path, record, known)) for path, record in known]
    lost = sum(len(record.requests) for _, record in known) - sum(len(each.judged) for each in replays)
    return calibrate_on_requests(deployment, served, replays, holdout, dropped=lost, seed=seed)


def _named(path: Path, record: RunRecord, known: Sequence[tuple[Path, RunRecord]]) -> str:
    """The run by its load, with its folder where several have the same."""
    load = record.conditions.load
    alike = sum(other.conditions.load == load for _, other in known) > 1
    return f"{load} ({path.name})" if alike else load


def calibration_of(
    deployment: Deployment, found: Calibrated, runs: Sequence[str], policies: Sequence[str]
) -> Calibration:
    """What the file is to hold."""
    errors = {
        "train_median": found.train.median,
        "train_p90": found.train.p90,
        "heldout_median": found.heldout.median,
        "heldout_p90": found.heldout.p90,
    }
    return Calibration(
        setting=setting_of(deployment),
        fitted=found.told.fitted,
        assumed=found.told.assumed,
        policy="; ".join(policies),
        source=found.source,
        runs=tuple(runs),
        measured=datetime.now(UTC).strftime("%Y-%m-%d"),
        version=__version__,
        errors={name: value for name, value in errors.items() if isfinite(value)},
        spread=found.spread,
        valid_range=found.valid_range,
    )


def _lengths(records: Sequence[RunRecord]) -> str:
    prompts, outputs = [0.0, 0.0], [0.0, 0.0]
    for record in records:
        rows = completed_by_schedule(record.requests)
        for sums, column in ((prompts, record.requests.prompt_tokens), (outputs, record.requests.output_tokens)):
            sums[0] += float(ints(column)[rows].sum())
            sums[1] += len(rows)
    if not prompts[1]:
        raise InputError("no request completed", where="runs", hint="calibrate on runs that went well")
    return f"mean {prompts[0] / prompts[1]:,.0f} tokens in, {outputs[0] / outputs[1]:,.0f} out"


def _result(found: Calibrated, calibration: Calibration, target: Path | None) -> dict[str, Any]:
    return {
        "coefficients": {name: _coefficient(calibration, name) for name in COEFFICIENTS},
        "train_error": found.train.to_json(),
        "heldout_error": found.heldout.to_json(),
        "by_load": [each.to_json() for each in found.levels],
        "valid_range": _range(found.valid_range),
        "source": found.source,
        "model_error": found.told.evidence.model_error,
        "spread": found.spread,
        "dropped_records": found.dropped,
        "file": None if target is None else str(target),
    }


def _coefficient(calibration: Calibration, name: str) -> dict[str, Any]:
    """A coefficient with its interval; one that was not told is null, with what is assumed and what to measure."""
    known = calibration.fitted.get(name)
    if known is not None:
        return {"value": known.value, "ci95": list(known.ci95)}
    taken = calibration.assumed[name]
    return {"value": None, "ci95": None, "assumed": taken.value, "why": taken.why, "next": taken.measure}


def _range(valid: ValidRange) -> dict[str, list[int]]:
    names = ("decode_sequences", "context_tokens", "prefill_tokens", "tensor")
    return {name: list(getattr(valid, name)) for name in names}


def _caveats(found: Calibrated, calibration: Calibration) -> tuple[Caveat, ...]:
    told = tuple(
        Caveat("coefficient-not-identified", f"{name} is not stated: {each.why}", each.measure)
        for name, each in calibration.assumed.items()
    )
    at_peak = tuple(
        Caveat(
            "faster-than-accelerator",
            f"{name} stands at its bound of 1: the server is as fast as the accelerator's numbers allow, or faster",
            "measure the accelerator again (servewise probe ops), or give its true peak and bandwidth",
        )
        for name, each in calibration.fitted.items()
        if name.endswith("_efficiency") and each.value > 0.999
    )
    if not calibration.fitted:
        message = f"the runs scatter by {found.told.evidence.model_error:.0%}, which hides every coefficient"
        told += (Caveat("nothing-told", message, "longer runs on a quiet machine; predict loads like these alone"),)
    if not found.heldout.median > FAR_OFF:
        return told + at_peak
    message = f"held-out predictions are off by {found.heldout.median:.0%} (median): the form does not fit this server"
    return told + at_peak + (Caveat("poor-fit", message, "check model, accelerator, precision and policy settings"),)


def _doubts(records: Sequence[RunRecord]) -> tuple[Caveat, ...]:
    return tuple(caveat for record in records for caveat in record.caveats)


def _target(path: Path) -> Path:
    if path.suffix != ".toml":
        raise InputError("must end in .toml, so that --estimator takes it", where=str(path))
    if path.is_dir() or (path.exists() and not path.is_file()):
        raise InputError("is no file", where=str(path), hint="name a file")
    if not path.absolute().parent.is_dir():
        raise InputError("its folder does not exist", where=str(path), hint="make it first")
    return path


def _write(path: Path, text: str) -> None:
    try:
        replace_whole(path.resolve(), text.encode("utf-8"))
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", where=str(path), hint="another place") from error
