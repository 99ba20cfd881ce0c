"""One variant measured: its server started, every run that is not kept yet driven, the server stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from servewise.ask.serve_small.machine import Gauge
from servewise.ask.serve_small.prompts import ShiftedPrompts
from servewise.ask.serve_small.variants import Variant
from servewise.ask.serve_small.wanted import Wanted
from servewise.conditions import Conditions
from servewise.errors import InputError, RunFailed
from servewise.measure.addressing import target_of
from servewise.measure.bench.condition import Condition
from servewise.measure.bench.one_run import RunWanted, measure
from servewise.measure.bench.order import block
from servewise.measure.drive.drive import drive
from servewise.measure.drive.get import get
from servewise.measure.drive.terms import Terms
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompt import TokenIds
from servewise.measure.load.wanted import schedule_for
from servewise.measure.schedule import Schedule
from servewise.measure.servers.launch import Launcher
from servewise.measure.servers.running import Running, running
from servewise.records.columns import COMPLETED, RequestColumns
from servewise.records.run_directory import HEADER, RunRecord, read_run
from servewise.version import __version__
from servewise.workload.lengths import Fixed

COMMAND = "servewise experiment serve-small"
WARM, WARM_TOKENS = 8, 4
MOST_REQUESTS, WARM_SERIAL = 1_000_000, 500_000  # of a run; from which number on its warm-up counts


@dataclass(frozen=True, slots=True)
class Piece:
    """One run of a variant: at so many streams, for the so-manieth time."""

    streams: int
    repeat: int

    @property
    def name(self) -> str:
        """Its folder."""
        return f"concurrency-{self.streams}-{self.repeat + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A variant in its folder. ``hardware`` is the machine's name for conditions, ``ended`` is told of each run."""

    variant: Variant
    wanted: Wanted
    folder: Path
    hardware: str
    gauge: Gauge
    ended: Callable[[], None]
    tell: Callable[[str], None]

    def pieces(self) -> list[Piece]:
        """All runs, repeat by repeat, in random order within each."""
        return [
            Piece(streams, repeat)
            for repeat in range(self.wanted.repeats)
            for streams in block(self.variant.streams, self.wanted.seed, repeat)
        ]

    def missing(self) -> list[Piece]:
        """The runs that are not kept whole."""
        return [each for each in self.pieces() if not is_whole(self.folder / each.name)]

    def measure(self, launcher: Launcher, missing: list[Piece]) -> None:
        """Measure them. RunFailed where the server does not come up, dies, or fails every request."""
        with running(launcher, self.folder / "server.log", tell=self.tell) as server:
            for piece in missing:
                self._measure(piece, server)
                self.ended()

    def _measure(self, piece: Piece, server: Running) -> None:
        wanted, variant, directory = self.wanted, self.variant, self.folder / piece.name
        target = target_of(server.url, model=server.model, api="completions", keep_alive=False)
        form = Form(model=server.model, api="completions")
        seed = wanted.seed + piece.repeat
        prompts = ShiftedPrompts(seed=wanted.seed, material=TokenIds(), first=self._place(piece) * MOST_REQUESTS)
        load = wanted.load(variant, piece.streams)
        condition = Condition(kind="concurrency", value=piece.streams)
        before = self.gauge.read(server.keeper.pid)
        shutil.rmtree(directory, ignore_errors=True)
        found = measure(
            RunWanted(
                condition=condition,
                schedule=schedule_for(load, prompts, form, seed=seed, concurrency=piece.streams),
                repeat=piece.repeat,
                first=(self._warm_up(piece.streams, prompts, form, seed),),
                terms=Terms(
                    until_s=None if variant.batching == "static" else wanted.most_s, drain_s=target.timeouts.total_s
                ),
                directory=directory,
                record=self._record(piece, server, seed),
                fetch=partial(get, target, target.metrics_path),
                details={
                    "variant": variant.name,
                    "machine": before,
                    "server_start_s": server.started_s,
                    "server_command": list(server.command),
                },
            ),
            partial(drive, target=target),
        )
        if found.ended == "interrupted":
            raise KeyboardInterrupt
        server.check()
        if found.ended == "disk":
            raise InputError(found.reason, where=str(directory), hint="make room")
        if found.ended != "whole" or not found.tally.completed:
            said = found.reason or next(iter(found.tally.examples.values()), "no request completed")
            raise RunFailed(f"{server.name} at {condition}: {said}; its log: {server.log}")

    def _warm_up(self, streams: int, prompts: ShiftedPrompts, form: Form, seed: int) -> Schedule:
        """Short answers to up to ``WARM`` prompts at once, which hold the shared prefix where the run's do."""
        count = min(streams, WARM)
        load = replace(self.wanted.load(self.variant, streams, requests=count), output_tokens=Fixed(WARM_TOKENS))
        return schedule_for(load, prompts.later(WARM_SERIAL), form, seed=seed, concurrency=count)

    def _place(self, piece: Piece) -> int:
        """Its place among all runs of the variant: each has prompts of its own, under one shared prefix."""
        return piece.repeat * len(self.variant.streams) + self.variant.streams.index(piece.streams)

    def _record(self, piece: Piece, server: Running, seed: int) -> RunRecord:
        return RunRecord(
            kind="measured",
            conditions=replace(
                self.conditions(f"{server.name} {server.version}").at(load=f"closed loop of {piece.streams} streams"),
                seeds=(seed,),
            ),
            requests=RequestColumns(),
            slots=max(self.variant.streams),
            seed=seed,
            versions={"servewise": __version__, server.name: server.version},
            command=COMMAND,
        )

    def conditions(self, engine: str) -> Conditions:
        """Of all its runs."""
        kv = "f16" if self.variant.server == "llamacpp" else "bf16"
        rounded = ", int8 activations in layers" if self.variant.weights == "int8" else ""
        return Conditions(
            hardware=f"1 x {self.hardware}, server and client on it",
            load="closed loop",
            lengths=self.wanted.lengths(self.variant),
            precision=f"{self.variant.weights} weights{rounded}, {kv} KV",
            model=self.wanted.model,
            engine=engine,
            policy=self.variant.policy,
            version=__version__,
        )


def is_whole(directory: Path) -> bool:
    """Whether a run is kept there that ended as it should, and in which something completed."""
    if not (directory / HEADER).exists():
        return False
    try:
        record = read_run(directory)
    except InputError:
        return False
    return COMPLETED in record.requests.status and all(each.code != "partial-run" for each in record.caveats)
