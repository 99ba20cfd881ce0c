"""What does a server do, under which load? Measured over its OpenAI-compatible API."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from servewise.answer import Answer
from servewise.ask.bench_begun import COMMAND, begun_in, options_of
from servewise.ask.bench_caveats import run_caveats
from servewise.ask.bench_keeping import Keeping, answered
from servewise.ask.bench_options import Asked, BenchOptions, asked
from servewise.ask.bench_rows import measured_row
from servewise.ask.bench_senders import senders
from servewise.ask.bench_words import knee_json, lengths_of, load_of, loads_of, search_caveats, shown
from servewise.ask.rows import slo_rows
from servewise.caveats import Caveat, unique
from servewise.conditions import Conditions
from servewise.errors import RunFailed
from servewise.measure.ask import Ask
from servewise.measure.bench.campaign import Campaign
from servewise.measure.bench.condition import Condition
from servewise.measure.bench.details import early_end
from servewise.measure.bench.enough import MOST
from servewise.measure.bench.measured import Measured
from servewise.measure.bench.one_run import Driver, RunWanted, measure
from servewise.measure.bench.open_files import make_room
from servewise.measure.bench.probing import dialect_at, engine_of, patiently, probe
from servewise.measure.bench.search import Knee
from servewise.measure.bench.warming import known_prompts, warm_up
from servewise.measure.crew.crew import Crew
from servewise.measure.drive.drive import drive
from servewise.measure.drive.get import get
from servewise.measure.drive.one import send_one
from servewise.measure.drive.terms import DRAIN_S, USUAL, Terms
from servewise.measure.exchange import Exchange
from servewise.measure.hiding import shown_address
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.token_counter import token_counter
from servewise.measure.load.wanted import schedule_for
from servewise.measure.schedule import Schedule
from servewise.measure.sending import Sending
from servewise.records.begun import Begun
from servewise.records.columns import RequestColumns
from servewise.records.origin import Origin
from servewise.records.run_directory import RunRecord
from servewise.version import __version__

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Benched:
    """The answer, and how the measurement ended: whole, interrupted, server or disk (``reason`` in words)."""

    answer: Answer
    ended: str
    reason: str


def resume(
    folder: str | Path,
    url: str | None = None,
    *,
    given: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Benched:
    """Go on with the measurement that was begun in ``folder``; the answer of one that is whole is given again.

    ``given`` are options named again: a key and headers, which were not kept; any other must be as it was. InputError
    for the first that differs, and for another version, server or content of a file.
    """
    begun = begun_in(Path(folder))
    address, options = options_of(begun, Path(folder), url, given or {})
    answer = answered(Path(folder), begun)
    return bench(address, options, progress=progress, begun=begun) if answer is None else Benched(answer, "whole", "")


def bench(
    url: str,
    options: BenchOptions,
    *,
    command: str | None = None,
    progress: Progress | None = None,
    begun: Begun | None = None,
) -> Benched:
    """Measure the server at ``url``; see ``BenchOptions``. ``begun``: what was begun in its folder before.

    ``command``: the line that asks, which kept runs hold.

    Every condition is run ``repeats`` times in random order, each run after a warm-up of its own; figures are of its
    steady window (``measure.bench.window``). What ended before an interrupt, a dead server or a full disk is in the
    answer, with the caveat ``partial-run``. Raises InputError for what the user can mend before traffic is sent, and
    RunFailed where nothing was measured.
    """
    wanted = asked(url, options)
    most = max((each.streams or 1 for each in wanted.conditions), default=1)
    make_room(-(-most // options.workers))
    with senders(options, wanted.target) as crew:
        keeping = None if wanted.run_dir is None else Keeping(wanted, wanted.run_dir, begun, command or COMMAND)
        return _Bench(wanted, crew, progress, keeping).go()


class _Bench:
    """A measurement under way."""

    def __init__(self, wanted: Asked, crew: Crew | None, progress: Progress | None, keeping: Keeping | None) -> None:
        self.crew, self.keeping = crew, keeping
        self.wanted, self.target, self.options = wanted, wanted.target, wanted.options
        self.form = wanted.form
        self.engine: str | None = None
        self.progress = progress
        self.campaign = Campaign(self._run_one)
        self.caveats: tuple[Caveat, ...] = ()
        self.prompts = Prompts(seed=self.options.seed)
        self.count_text = None if self.options.tokenizer is None else token_counter(self.options.tokenizer)

    def go(self) -> Benched:
        """Probe, measure, answer."""
        if self.keeping is None:
            return self._go()
        self.keeping.claim(self._conditions())
        try:
            return self._go()
        finally:
            self.keeping.release()

    def _go(self) -> Benched:
        self._meet()
        knee = self._measure()
        if not any(each.tally.completed for each in self.campaign.runs):
            if self.campaign.ended == "interrupted":
                raise KeyboardInterrupt
            raise RunFailed(f"no request completed ({self._example()})")
        answer = self._answer(knee)
        self._keep(answer)
        return Benched(answer, self.campaign.ended, self.campaign.reason)

    def _meet(self) -> None:
        """The first words with the server: which form it takes, how long its words are."""
        probed = probe(self.target, self.form, self._send, self._fetch)
        self.form = probed.form
        self.engine = self.options.engine or engine_of(self.target, self._fetch) or dialect_at(self.target, self._fetch)
        if self.keeping is not None:
            self.keeping.met(self.engine, self._conditions())
        self._learn()
        self.caveats = (*probed.caveats, *self.prompts.size.caveats)

    def _measure(self) -> Knee | None:
        options, conditions = self.options, self.wanted.conditions
        if self.wanted.search is None:
            self.campaign.repeat(conditions, options.repeats, options.seed, options.ci)
            return None
        assert self.wanted.slo is not None
        given = {condition.kind: condition.value for condition in conditions[:1]}
        first = given.get(self.wanted.search, 1.0 if self.wanted.search == "rate" else 8.0)
        return self.campaign.search(self.wanted.search, first, self.wanted.slo, options.repeats)

    def _learn(self) -> None:
        """Prompts that have the lengths that were asked for, by a tokenizer or by what the server counts."""
        if self.wanted.load.file_prompts:
            return
        salted = replace(self.prompts, salt=secrets.randbits(62), counted=self.count_text)
        self.prompts = salted.calibrated(self._send, self.form)

    def _run_one(self, condition: Condition, repeat: int) -> Measured:
        kept = None if self.keeping is None else self.keeping.run(condition, repeat)
        found = self._measured(condition, repeat) if kept is None else kept
        self._progressed(found)
        return found

    def _measured(self, condition: Condition, repeat: int) -> Measured:
        options, seed = self.options, self.options.seed + repeat
        salt = 0 if self.wanted.cache == "as-is" else secrets.randbits(62)
        prompts = replace(self.prompts, seed=seed, salt=salt)
        return measure(
            RunWanted(
                condition=condition,
                schedule=self._schedule(condition, prompts, seed),
                repeat=repeat,
                workers=1 if self.crew is None else self.crew.workers,
                lead_s=0.0 if self.crew is None else self.crew.lead_s,
                first=self._first(condition, prompts, seed),
                terms=Terms(until_s=self.wanted.load.duration_s, drain_s=self._drain_s(condition)),
                retries=self.wanted.load.retries,
                slo=self.wanted.slo,
                directory=None if self.keeping is None else self.keeping.directory(condition, repeat),
                claimed=not self.wanted.several,
                record=self._record(condition, seed),
                fetch=lambda: get(self.target, self.target.metrics_path),
                count_text=self.count_text,
                details={"salt": salt, "prefix_cache": self.wanted.cache, "options": shown(options)},
            ),
            self._driver(),
        )

    def _drain_s(self, condition: Condition) -> float:
        """How long what is open may go on. Of an open loop all counts; in a search what is later has failed the SLO."""
        if not condition.is_open:
            return DRAIN_S
        if self.wanted.search is None or self.wanted.slo is None:
            return self.target.timeouts.total_s
        return DRAIN_S + max(bound.limit_s for bound in self.wanted.slo.bounds)

    def _schedule(self, condition: Condition, prompts: Prompts, seed: int) -> Schedule:
        rate = condition.rate_per_s if condition.kind == "rate" else None
        streams = condition.streams
        return schedule_for(self.wanted.load, prompts, self.form, seed=seed, concurrency=streams, rate_per_s=rate)

    def _first(self, condition: Condition, prompts: Prompts, seed: int) -> tuple[Schedule, ...]:
        """The warm-up, with texts of its own; then, for a warm prefix cache, what the run will share or repeat."""
        found: list[Schedule] = []
        streams = min(condition.streams or 2, 64)
        count = max(2, streams) if self.options.warmup is None else self.options.warmup
        if count:
            fresh = prompts.salted(secrets.randbits(62))
            found.append(warm_up(self.wanted.load, fresh, self.form, seed=seed, count=count, streams=streams))
        if self.wanted.cache == "warm":
            found.append(known_prompts(self.wanted.load, condition, prompts, self.form, seed=seed, streams=streams))
        return tuple(found)

    def _driver(self) -> Driver:
        crew, target = self.crew, self.target
        keep_text = self.wanted.load.needs_text or self.count_text is not None

        def send(schedule: Schedule, *, terms: Terms = USUAL, **how: Any) -> Sending:
            terms = replace(terms, keep_text=keep_text)
            if crew is None:
                return drive(schedule, target, terms=terms, **how)
            return crew.drive(schedule, target, terms=terms, **how)

        return send

    def _send(self, ask: Ask) -> Exchange:
        return patiently(lambda each: send_one(each, self.target), ask)

    def _fetch(self, path: str) -> bytes:
        return get(self.target, path)

    def _progressed(self, found: Measured) -> None:
        del found
        if self.progress is not None:
            options = self.options
            repeats = options.repeats if options.ci is None else MOST
            self.progress(len(self.campaign.runs) + 1, len(self.wanted.conditions) * repeats)

    def _keep(self, answer: Answer) -> None:
        if self.keeping is not None and self.campaign.ended != "disk":
            self.keeping.end(answer, self.campaign.ended)

    def _record(self, condition: Condition, seed: int) -> RunRecord:
        origin = Origin(command=COMMAND) if self.keeping is None else self.keeping.origin
        return RunRecord(
            kind="measured",
            conditions=replace(self._conditions().at(load=load_of(condition)), seeds=(seed,)),
            requests=RequestColumns(),
            seed=seed,
            versions={"servewise": __version__},
            command=origin.command,
            sources=origin.sources,
            caveats=self.caveats,
        )

    def _conditions(self) -> Conditions:
        options, load = self.options, self.wanted.load
        return Conditions(
            model=options.model,
            hardware=options.hardware,
            precision=options.precision,
            engine=self.engine,
            load=loads_of(self.campaign.conditions() or self.wanted.conditions, self.wanted),
            lengths=lengths_of(self.wanted),
            workload=None if load.trace is None else load.trace.title,
            policy=f"prefix cache {self.wanted.cache}" + (f", {load.prefix}" if load.prefix else ""),
            seeds=tuple(range(options.seed, options.seed + self._most_repeats())),
            version=__version__,
        )

    def _most_repeats(self) -> int:
        return max((each.repeat + 1 for each in self.campaign.runs), default=1)

    def _answer(self, knee: Knee | None) -> Answer:
        groups = [_that_count(self.campaign.of(each)) for each in self.campaign.conditions()]
        rows = [measured_row(runs, self.wanted.load, self.options.seed) for runs in groups]
        ended = () if self.campaign.ended == "whole" else (early_end(self.campaign.reason, self.wanted.run_dir),)
        resumed = () if self.keeping is None else self.keeping.caveats()
        return Answer(
            command="bench",
            conditions=self._conditions(),
            result={
                "rows": rows,
                "run_dir": None if self.wanted.run_dir is None else str(self.wanted.run_dir),
                "url": shown_address(self.target),
                "slo": None if self.wanted.slo is None else slo_rows(self.wanted.slo),
                "search": None if knee is None else knee_json(knee, self.wanted),
                "prefix_cache": self.wanted.cache,
                "order": [f"{each.condition.name}-{each.repeat + 1}" for each in self.campaign.runs],
            },
            caveats=unique((*ended, *resumed, *self.caveats, *search_caveats(knee), *run_caveats(self.wanted, groups))),
        )

    def _example(self) -> str:
        examples = (example for each in self.campaign.runs for example in each.tally.examples.values())
        return next(examples, self.campaign.reason or "none ended")


def _that_count(runs: list[Measured]) -> list[Measured]:
    """Those that came to their end; where none did, what there is."""
    return [each for each in runs if each.ended == "whole"] or runs
