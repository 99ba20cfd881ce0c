"""Does a prediction hold on this very server? Measure, calibrate, plan, measure the plan's own point again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from servewise.answer import Answer
from servewise.ask.bench import Benched, bench
from servewise.ask.bench_options import BenchOptions
from servewise.ask.calibrate import calibrate, runs_in
from servewise.ask.deploying import Options, conditions_of, deploy, hardware_of
from servewise.ask.foretelling import Load, capacity_per_s, foretell
from servewise.ask.names import AcceleratorLike, ModelLike
from servewise.ask.numbers import whole, wholes
from servewise.ask.rows import slo_rows
from servewise.ask.serving import PolicyOptions, capacity_for_serving, describe, policy_named
from servewise.calibrate.replay import replay_of
from servewise.caveats import Caveat, unique
from servewise.deployment.deployment import Deployment
from servewise.errors import InputError, RunFailed
from servewise.metrics.slo import Slo, parse_slo
from servewise.metrics.summary import RunSummary
from servewise.plan.server import Server
from servewise.records.placing import refuse_occupied
from servewise.steptime.calibration_file import load_calibration
from servewise.steptime.ranges import under_way_caveats
from servewise.workload.notation import written_lengths

STREAMS, REQUESTS, POINT_REQUESTS = (1, 8), 12, 150
MOST_LEVELS = 8
CALIBRATION, LEVELS, POINT = "calibration.toml", "levels", "point"
SEARCHED, ROUNDS = 400, 9  # simulated requests a rate, halvings of the interval in which the highest rate lies
METRICS = (("ttft_s", "p50"), ("ttft_s", "p95"), ("tpot_s", "p50"), ("tpot_s", "p95"))
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Looped:
    """The answer, and how the last measurement ended (see ``bench``)."""

    answer: Answer
    ended: str


def loop(
    url: str,
    spec: ModelLike,
    accelerator: AcceleratorLike | None,
    options: BenchOptions,
    *,
    run_dir: str | Path,
    slo: str,
    streams: int | tuple[int, ...] = STREAMS,
    requests: int = REQUESTS,
    point_requests: int = POINT_REQUESTS,
    slots: int | None = None,
    prefix_cache: bool = False,
    command: str | None = None,
    tell: Tell | None = None,
    **deployed: Unpack[Options],
) -> Looped:
    """Measure closed loops at ``streams``, ``requests`` a stream; calibrate on them; find the highest Poisson rate that
    keeps ``slo`` in the simulator; measure ``point_requests`` at that rate, and compare.

    ``options`` are those of ``bench`` (server's name of the model, hardware, precision, lengths), ``slots``,
    ``prefix_cache`` and ``deployed`` say how the server batches and what it runs on, as for ``calibrate``. ``run_dir``
    keeps the runs, the calibration and what was foretold before the point was measured; the runs hold ``command``, the
    line that asks.
    """
    tell = tell or (lambda _line: None)
    objective = parse_slo(slo)
    deployment = deploy(spec, accelerator, **deployed)
    levels = wholes(streams, "streams")
    if len(levels) > MOST_LEVELS:
        raise InputError(f"at most {MOST_LEVELS} levels", where="streams")
    each, point = whole(requests, "requests", most=10_000), whole(point_requests, "point_requests", most=1_000_000)
    folder = Path(run_dir)
    refuse_occupied(folder)
    for level in levels:
        tell(f"measuring {level} streams")
        count = max(level * each, 2 * each)
        _whole(bench(url, _closed(options, folder, level, count), command=command))
    tell("calibrating")
    calibrated = calibrate(folder / LEVELS, spec, accelerator, output=folder / CALIBRATION, slots=slots, **deployed)
    server = server_of(deployment, folder / CALIBRATION, slots=slots, prefix_cache=prefix_cache)
    load = Load(
        requests=point,
        prompts=written_lengths(options.input_tokens, where="input-tokens"),
        outputs=written_lengths(options.output_tokens, where="output-tokens"),
        rate_per_s=1.0,
        pause_s=pause_in(folder / LEVELS),
    )
    rate = highest_rate(server, load, objective)
    foretold = measured = None
    if rate is not None:
        load = replace(load, rate_per_s=rate)
        foretold = foretell(server, load, slo=objective)
        tell(f"measuring {rate:.3g} requests/s")
        measured = bench(url, _open(options, folder, rate, point, slo), command=command)
    return Looped(
        _answer(deployment, server, options.hardware, calibrated, objective, rate, foretold, measured, folder),
        measured.ended if measured else "whole",
    )


def _closed(options: BenchOptions, folder: Path, level: int, count: int) -> BenchOptions:
    place = str(folder / LEVELS / f"concurrency-{level}")
    return replace(options, concurrency=level, rate=None, requests=count, repeats=1, run_dir=place)


def _open(options: BenchOptions, folder: Path, rate: float, count: int, slo: str) -> BenchOptions:
    place = str(folder / POINT)
    return replace(options, concurrency=None, rate=rate, requests=count, repeats=1, run_dir=place, slo=slo)


def _whole(found: Benched) -> None:
    if found.ended == "interrupted":
        raise KeyboardInterrupt
    if found.ended != "whole":
        raise RunFailed(f"{found.reason}; what was measured is kept")


def server_of(deployment: Deployment, calibration: Path, *, slots: int | None, prefix_cache: bool = False) -> Server:
    """The calibrated server under continuous batching."""
    capacity = capacity_for_serving(deployment)
    return Server(
        policy=policy_named("continuous", deployment, PolicyOptions(slots=slots, prefix_cache=prefix_cache)),
        estimator=load_calibration(calibration).estimator(deployment, calibration.name),
        blocks=capacity.blocks,
        block_tokens=capacity.block_tokens,
        deployment=deployment,
    )


def pause_in(runs: Path | Iterable[Path]) -> float:
    """The usual pause of the users of closed loops, between answer and next request [s]."""
    pauses = [replay_of(record, str(path)).pause_s for path, record in runs_in(runs)]
    return sorted(pauses)[len(pauses) // 2]


def highest_rate(server: Server, load: Load, slo: Slo) -> float | None:
    """The highest Poisson rate that keeps ``slo``, to one part in 2^ROUNDS of the capacity; None: none does."""
    many = replace(load, requests=SEARCHED)
    low, high = 0.0, 1.2 * capacity_per_s(server, load)
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        if slo.holds(foretell(server, replace(many, rate_per_s=middle), seeds=3)):
            low = middle
        else:
            high = middle
    return float(f"{low:.3g}") if low else None


def _answer(
    deployment: Deployment,
    server: Server,
    hardware: str,
    calibrated: Answer,
    slo: Slo,
    rate: float | None,
    foretold: RunSummary | None,
    measured: Benched | None,
    folder: Path,
) -> Answer:
    row: Mapping[str, Any] = measured.answer.result["rows"][0] if measured else {}
    load = "no rate keeps the SLO" if rate is None else f"{rate:g} requests/s"
    conditions = replace(
        conditions_of(deployment, load=load, lengths=calibrated.conditions.lengths, estimator=server.estimator.name),
        policy=describe(server.policy),
        hardware=f"{hardware} (by the arithmetic of {hardware_of(deployment)})",
    )
    return Answer(
        command="loop",
        conditions=conditions,
        result={
            "rate_per_s": rate,
            "slo": slo_rows(slo),
            "rows": rows_of(foretold, row) if foretold else [],
            "calibration": {
                name: calibrated.result[name]
                for name in ("coefficients", "train_error", "heldout_error", "by_load", "valid_range")
            },
            "file": str(folder / CALIBRATION),
            "run_dir": str(folder),
        },
        caveats=unique(
            (() if rate else (_no_rate(),))
            + (_beyond(server, rate, foretold) if rate and foretold else ())
            + calibrated.caveats
            + (measured.answer.caveats if measured else ())
        ),
    )


def _no_rate() -> Caveat:
    message = "no arrival rate keeps the SLO on this server, by its calibration: no point was measured"
    return Caveat("slo-not-met", message, "a looser SLO, fewer bits, a faster accelerator, or shorter requests")


def _beyond(server: Server, rate_per_s: float, foretold: RunSummary) -> tuple[Caveat, ...]:
    """A caveat where more requests are under way than were calibrated on."""
    under_way = rate_per_s * foretold.e2e.mean
    cure = f"calibrate with --streams up to {under_way:.0f} or more"
    return under_way_caveats(server.estimator, under_way, "this rate", cure)


def rows_of(foretold: RunSummary, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each metric as it was foretold and as it was measured (a row of ``bench``), with their ratio."""
    found = {"ttft_s": foretold.ttft.to_json(), "tpot_s": foretold.tpot.to_json()}
    pairs: list[tuple[str, Any, Any, Any]] = []
    for name, share in METRICS:
        known = row.get(name) or {}
        label = f"{name.removesuffix('_s')}_{share}_s"
        pairs.append((label, found[name][share], known.get(share), known.get(f"ci95_{share}")))
    pairs.append(("output_tokens_per_s", foretold.output_tokens_per_s, row.get("output_tokens_per_s"), None))
    return [
        {
            "metric": metric,
            "predicted": predicted,
            "measured": measured,
            "ci95": interval,
            "ratio": predicted / measured if measured else None,
        }
        for metric, predicted, measured, interval in pairs
    ]
