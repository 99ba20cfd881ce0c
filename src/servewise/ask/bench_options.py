"""What a user asks ``bench`` for, checked before any traffic is sent."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from servewise.ask.numbers import positive, positives, share, whole, wholes
from servewise.errors import InputError, UnknownName
from servewise.executing.executor import executor_named
from servewise.measure.addressing import target_of
from servewise.measure.bench.condition import Condition
from servewise.measure.load.bodies import Form, api_of, parsed_extra
from servewise.measure.load.prompt_file import read_prompts
from servewise.measure.load.retry import RetryRule
from servewise.measure.load.thinking import Thinking
from servewise.measure.load.wanted import Conversations, LoadWanted
from servewise.measure.target import Target, Timeouts
from servewise.metrics.slo import Slo, parse_slo
from servewise.workload.load import load_workload
from servewise.workload.notation import written_arrivals, written_lengths
from servewise.workload.prefix import SharedPrefix
from servewise.workload.traces.trace import Trace

DURATION_S = 30.0
STREAMS = (1, 8, 32)
MOST_WORKERS = 256
MOST_REPEATS = 1_000
CACHES = ("cold", "warm", "as-is")
Cache = Literal["cold", "warm", "as-is"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """Every option of ``bench`` by its name; times in seconds, rates per second, None where it was left out.

    ``hardware`` and ``precision`` are the server's, as the user knows them: no figure leaves without them. Lengths and
    arrivals are in the notation of ``workload.notation``. ``executor``: local, ray, ray://host:port or host:port: where
    the ``workers`` are, on a cluster so many on each node. ``ci``: repeat until each interval is within that share.
    """

    model: str
    hardware: str
    precision: str
    engine: str | None = None
    concurrency: int | tuple[int, ...] | None = None
    rate: float | tuple[float, ...] | None = None
    trace: str | None = None
    sessions: int | None = None
    turns: str = "4"
    think: float = 0.0
    arrivals: str = "poisson"
    input_tokens: str = "512"
    output_tokens: str = "128"
    prompts: str | None = None
    shared_prefix: int | None = None
    prefix_groups: int = 1
    prefix_share: float = 1.0
    duration: float | None = None
    requests: int | None = None
    warmup: int | None = None
    repeats: int = 3
    ci: float | None = None
    api: str = "chat"
    slo: str | None = None
    search: str | None = None
    prefix_cache: str = "cold"
    max_in_flight: int | None = None
    retries: int = 3
    workers: int = 1
    executor: str | None = None
    tokenizer: str | None = None
    extra: str | None = None
    ignore_eos: bool = True
    api_key: str | None = None
    headers: tuple[str, ...] = ()
    insecure: bool = False
    keep_alive: bool = True
    timeout: float | None = None
    first_token_timeout: float | None = None
    run_dir: str | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options made into what the rooms take."""

    options: BenchOptions
    target: Target
    form: Form
    conditions: tuple[Condition, ...]
    load: LoadWanted
    slo: Slo | None
    cache: Cache
    search: Literal["rate", "concurrency"] | None
    run_dir: Path | None

    @property
    def several(self) -> bool:
        """Whether there is more than one run, so that the run directory holds a folder for each."""
        options = self.options
        return self.search is not None or options.ci is not None or len(self.conditions) * options.repeats > 1


def asked(url: str, options: BenchOptions) -> Asked:
    """``options`` checked and made; InputError names the first that is wrong."""
    for name in ("hardware", "precision", "model"):
        _text(getattr(options, name), name)
    whole(options.repeats, "repeats", most=MOST_REPEATS)
    whole(options.seed, "seed", least=0)
    whole(options.workers, "workers", most=MOST_WORKERS)
    executor_named(options.executor or "local")
    if options.warmup is not None:
        whole(options.warmup, "warmup", least=0)
    if options.ci is not None and not 0 < share(options.ci, "ci") < 1:
        raise InputError("must be a share between 0 and 1", where="ci", hint="e.g. 5%")
    _refuse_unused(options)
    load = _load(options)
    slo = None if options.slo is None else parse_slo(options.slo)
    return Asked(
        options=options,
        target=_target(url, options),
        form=_form(options),
        conditions=_conditions(options, load),
        load=load,
        slo=slo,
        cache=_cache(options, load),
        search=_search(options, slo),
        run_dir=None if options.run_dir is None else Path(options.run_dir),
    )


def _refuse_unused(options: BenchOptions) -> None:
    """InputError for the first setting that this load would ignore."""
    ramp = options.arrivals.startswith("ramp")
    is_open = options.rate is not None or options.trace is not None or options.search == "rate" or ramp
    own_texts = options.prompts is not None and options.sessions is None
    rules = (
        ("prefix_groups prefix_share", options.shared_prefix is None, "needs --shared-prefix, its length in tokens"),
        ("turns", options.sessions is None, "needs --sessions, the conversations that go on at once"),
        ("think", is_open, "is the pause of users who wait for answers, not of an open loop"),
        ("max_in_flight", not is_open, "holds an open loop back, which --rate or --trace gives"),
        ("input_tokens output_tokens shared_prefix arrivals", options.trace is not None, "is the trace's own"),
        ("input_tokens", own_texts, "is that of the --prompts"),
        ("concurrency", options.search == "rate", "is not what is searched for"),
        ("rate", options.search == "concurrency", "is not what is searched for"),
    )
    defaults = {each.name: each.default for each in fields(BenchOptions)}
    for names, unused, why in rules:
        for name in names.split():
            if unused and getattr(options, name) != defaults[name]:
                raise InputError(why, where=name.replace("_", "-"), hint="leave it out")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or not value.isprintable():
        raise InputError("must be a text of at most 200 characters", where=where, hint="every figure carries it")
    return value


def _target(url: str, options: BenchOptions) -> Target:
    base = Timeouts()
    timeouts = replace(
        base,
        total_s=base.total_s if options.timeout is None else positive(options.timeout, "timeout", most=1e6),
        first_byte_s=base.first_byte_s
        if options.first_token_timeout is None
        else positive(options.first_token_timeout, "first-token-timeout", most=1e6),
    )
    return target_of(
        url,
        model=options.model,
        api=api_of(options.api),
        key=options.api_key or None,
        headers=tuple(_header(each) for each in options.headers),
        verify_tls=not options.insecure,
        keep_alive=options.keep_alive,
        timeouts=timeouts,
    )


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise InputError(f"{name[:40]!r} has no colon", where="header", hint='write it like "X-Team: blue"')
    return name.strip(), value.strip()


def _form(options: BenchOptions) -> Form:
    extra = {} if options.extra is None else parsed_extra(options.extra)
    return Form(model=options.model, api=api_of(options.api), ignore_eos=options.ignore_eos, extra=extra)


def _load(options: BenchOptions) -> LoadWanted:
    trace = None if options.trace is None else _trace(options.trace)
    requests = None if options.requests is None else whole(options.requests, "requests")
    duration = None if options.duration is None else positive(options.duration, "duration", most=1e7)
    if duration is None and requests is None and trace is None:
        duration = DURATION_S
    prefix = None
    if options.shared_prefix is not None:
        prefix = SharedPrefix(options.prefix_groups, options.shared_prefix, options.prefix_share)
    first = written_lengths(options.input_tokens, where="input-tokens")
    return LoadWanted(
        input_tokens=first,
        output_tokens=written_lengths(options.output_tokens, where="output-tokens"),
        requests=requests,
        duration_s=duration,
        arrivals=options.arrivals,
        prefix=prefix,
        trace=trace,
        file_prompts=() if options.prompts is None else read_prompts(options.prompts),
        conversations=None
        if options.sessions is None
        else Conversations(turns=written_lengths(options.turns, where="turns"), input_tokens=first),
        thinking=Thinking(options.think),
        max_in_flight=options.max_in_flight,
        retries=RetryRule(most=whole(options.retries, "retries", least=0, most=100), seed=options.seed),
    )


def _trace(name: str) -> Trace:
    found = load_workload(name)
    if not isinstance(found, Trace):
        hint = "use --input-tokens, --output-tokens, --rate and --arrivals for a made load"
        raise InputError("is a workload that is made, not a trace", where=name[:80], hint=hint)
    return found


def _conditions(options: BenchOptions, load: LoadWanted) -> tuple[Condition, ...]:
    given = [name for name in ("concurrency", "rate", "sessions") if getattr(options, name) is not None]
    if len(given) > 1:
        raise InputError("a load is closed or open, not both", where=" and ".join(given), hint="give one of them")
    if load.trace is not None and given not in ([], ["rate"]):
        raise InputError("a trace has times of its own", where=given[0], hint="--rate scales them")
    if options.rate is not None:
        rates = positives(options.rate, "rate")
        written_arrivals(options.arrivals, rates[0], where="arrivals")
        return tuple(Condition(kind="rate", value=rate) for rate in rates)
    if load.trace is not None:
        return (Condition(kind="trace", value=load.workload().rate_per_s),)  # type: ignore[union-attr]
    if options.arrivals.startswith("ramp"):
        return (Condition(kind="rate", value=written_arrivals(options.arrivals, where="arrivals").rate_per_s),)
    if options.arrivals != "poisson":
        raise InputError("arrivals are those of an open loop", where="arrivals", hint="give --rate")
    if options.sessions is not None:
        return (Condition(kind="sessions", value=whole(options.sessions, "sessions", most=1_000_000)),)
    streams = STREAMS if options.concurrency is None else wholes(options.concurrency, "concurrency")
    return tuple(Condition(kind="concurrency", value=whole(each, "concurrency", most=1_000_000)) for each in streams)


def _cache(options: BenchOptions, load: LoadWanted) -> Cache:
    for known in CACHES:
        if options.prefix_cache == known:
            if known == "warm" and load.prefix is None and load.requests is None and load.trace is None:
                what = "the same prompts can only be sent before where their number is known"
                raise InputError(what, where="prefix-cache", hint="give --requests or --shared-prefix")
            return known  # type: ignore[return-value]
    raise UnknownName("prefix cache", options.prefix_cache[:40], CACHES, hint=f"one of {', '.join(CACHES)}")


def _search(options: BenchOptions, slo: Slo | None) -> Literal["rate", "concurrency"] | None:
    if options.search is None:
        return None
    if slo is None:
        raise InputError("needs --slo", where="search", hint='e.g. --slo "ttft_p95<=1s, tpot_p95<=50ms"')
    if options.trace is not None or options.sessions is not None or options.arrivals.startswith("ramp"):
        raise InputError("searches a made load of one level", where="search", hint="leave out trace, sessions and ramp")
    if options.search == "rate":
        return "rate"
    if options.search == "concurrency":
        return "concurrency"
    raise UnknownName("search", options.search[:40], ("rate", "concurrency"), hint="rate or concurrency")
