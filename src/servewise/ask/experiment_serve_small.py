"""The experiment that the study proposes and did not run: one small model on real servers, measured side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servewise.answer import Answer
from servewise.ask.numbers import positive, whole, wholes
from servewise.ask.serve_small.files import ModelFiles
from servewise.ask.serve_small.launching import Places, launcher_of
from servewise.ask.serve_small.machine import Gauge
from servewise.ask.serve_small.prediction import add_predictions
from servewise.ask.serve_small.rows import machine_caveats, rows_of
from servewise.ask.serve_small.session import Session
from servewise.ask.serve_small.variants import (
    PARTS,
    SERVERS,
    WITHOUT_QUANTISED,
    Variant,
    names_in,
    variants,
)
from servewise.ask.serve_small.wanted import Wanted
from servewise.atomic import replace_whole
from servewise.caveats import Caveat, unique
from servewise.conditions import Conditions
from servewise.engine.checkpoints.library import SMOLLM2
from servewise.errors import InputError, RunFailed
from servewise.probe.ops.machine import Machine, this_machine
from servewise.version import __version__

STREAMS, PREFIX_STREAMS = (1, 8, 32), (1, 8)
SETTINGS = "experiment.json"
Progress = Callable[[int, int], None]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Experimented:
    """The answer, and how it ended: ``whole``, ``interrupted``, or ``server`` where some server failed."""

    answer: Answer
    ended: str


def experiment_serve_small(
    *,
    run_dir: str | Path,
    places: Places,
    model: str = SMOLLM2,
    servers: Iterable[str] = tuple(SERVERS),
    parts: Iterable[str] = PARTS,
    streams: int | Iterable[int] = STREAMS,
    prefix_streams: int | Iterable[int] = PREFIX_STREAMS,
    requests: int = 2,
    repeats: int = 1,
    most_s: float = 60.0,
    threads: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Experimented:
    """TTFT, TPOT and throughput of ``model`` on each of ``servers`` (llamacpp, own, vllm), loads of ``streams``
    (with a shared prefix ``prefix_streams``: at 32 its prompts alone take llama.cpp minutes on two cores).

    ``parts``: 16-bit weights; quantised; a shared prefix of 512 tokens with prefix caching off and on; batching
    policies on answers of mixed lengths. Each run sends ``requests`` a stream (none after ``most_s`` [s]) in a closed
    loop, 128 tokens in and 64 out, and is made ``repeats`` times. Every run is kept in ``run_dir``; what is there
    already is not measured again. A server that fails is told, and the others are measured. An interrupt stops the
    server at hand and gives what was measured.
    """
    tell = tell or (lambda _line: None)
    chosen = names_in(tuple(servers), tuple(SERVERS), "servers")
    machine = this_machine("cpu", threads)
    wanted = Wanted(
        model=model,
        threads=machine.threads or 1,
        requests=whole(requests, "requests", most=10_000),
        repeats=whole(repeats, "repeats", most=100),
        most_s=positive(most_s, "most seconds", most=1e5),
        seed=whole(seed, "seed", least=0),
    )
    found = variants(
        chosen,
        names_in(tuple(parts), PARTS, "parts"),
        wholes(streams, "streams"),
        wholes(prefix_streams, "prefix streams"),
    )
    folder = Path(run_dir)
    _claim(folder, wanted)
    course = _Course(folder, wanted, machine, places, progress, tell, found)
    course.go()
    return Experimented(course.answer(chosen), course.ended)


class _Course:
    """The experiment under way."""

    def __init__(
        self,
        folder: Path,
        wanted: Wanted,
        machine: Machine,
        places: Places,
        progress: Progress | None,
        tell: Tell,
        found: Sequence[Variant],
    ) -> None:
        self.folder, self.wanted, self.machine, self.places = folder, wanted, machine, places
        self.tell, self.variants, self.progress = tell, found, progress
        self.files = ModelFiles(wanted.model, places.models, tell)
        self.gauge = Gauge(machine)
        self.failed: dict[str, str] = {}
        self.ended = "whole"
        self.sessions = [self._session(each) for each in found]
        self.done = self.whole = 0

    def _session(self, variant: Variant) -> Session:
        return Session(
            variant=variant,
            wanted=self.wanted,
            folder=self.folder / variant.name,
            hardware=str(self.machine),
            gauge=self.gauge,
            ended=self._tick,
            tell=self.tell,
        )

    def _tick(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.whole)

    def go(self) -> None:
        """Measure what is missing, server after server."""
        missing = [each.missing() for each in self.sessions]
        self.whole = sum(map(len, missing))
        for session, pieces in zip(self.sessions, missing, strict=True):
            if not pieces:
                continue
            variant = session.variant
            try:
                self.tell(f"{variant.name}: {len(pieces)} runs")
                launcher = launcher_of(variant, self.wanted, self.files, self.places, self.tell)
                session.measure(launcher, pieces)
            except RunFailed as error:
                self.failed[variant.name] = str(error)
                self.ended = "server"
                self.tell(str(error))
            except KeyboardInterrupt:
                self.ended = "interrupted"
                return

    def answer(self, servers: Sequence[str]) -> Answer:
        """All that is kept, measured now or before."""
        rows = [row for each in self.sessions for row in rows_of(each.variant, each.folder)]
        if not rows:
            if self.ended == "interrupted":
                raise KeyboardInterrupt
            raise RunFailed("; ".join(self.failed.values()) or "nothing was measured")
        rows = add_predictions(rows, self.variants, self.wanted, self.folder, self.machine)
        return Answer(
            command="experiment",
            conditions=self._conditions(rows),
            result={
                "experiment": "serve-small",
                "rows": rows,
                "run_dir": str(self.folder),
                "threads": self.wanted.threads,
                "failed": self.failed,
            },
            caveats=unique((*self._caveats(servers), *machine_caveats(rows))),
        )

    def _conditions(self, rows: Sequence[Mapping[str, Any]]) -> Conditions:
        engines = dict.fromkeys(f"{row['server']} {row['version']}" for row in rows)
        return Conditions(
            hardware=f"1 x {self.machine}, server and client on it",
            load=f"closed loop of {', '.join(map(str, sorted({row['concurrency'] for row in rows})))} streams",
            lengths="; ".join(dict.fromkeys(str(row["lengths"]) for row in rows)),
            precision=", ".join(dict.fromkeys(str(row["weights"]) for row in rows)) + " weights, 16-bit KV",
            model=self.wanted.model,
            engine=", ".join(engines),
            policy="as each row says",
            seeds=tuple(range(self.wanted.seed, self.wanted.seed + self.wanted.repeats)),
            version=__version__,
        )

    def _caveats(self, servers: Sequence[str]) -> list[Caveat]:
        found = [
            Caveat("server-failed", f"{name}: {why}", "see its log; the same command goes on where this one stopped")
            for name, why in self.failed.items()
        ]
        if self.ended == "interrupted":
            message = "interrupted: what had ended by then is here"
            found.append(Caveat("partial-run", message, "the same command goes on where this one stopped"))
        if any(each.part == "quantised" for each in self.variants) or len(servers) < len(SERVERS):
            found += [
                Caveat("no-quantised-build", f"{SERVERS[each]}: {why}", "its 16-bit rows stand alone")
                for each, why in WITHOUT_QUANTISED.items()
                if each in servers
            ]
        return found


def _claim(folder: Path, wanted: Wanted) -> None:
    """Take the folder for these settings; refuse one that holds other ones."""
    path = folder / SETTINGS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            kept = json.loads(path.read_text("utf-8"))
            if kept != wanted.to_json():
                what = "holds an experiment with other settings"
                raise InputError(what, where=str(folder), hint="name another --run-dir, or give the same options")
            return
        if any(folder.iterdir()):
            raise InputError("is not empty and holds no experiment", where=str(folder), hint="name another folder")
        replace_whole(path, json.dumps(wanted.to_json(), indent=2).encode())
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", where=str(folder)) from error
    except ValueError as error:
        raise InputError("is damaged", where=str(path), hint="name another --run-dir") from error
