"""``servewise bench``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from servewise.cli.commandline import typed_line
from servewise.cli.progress import progress_bar
from servewise.cli.quantities import DURATION, PER_S, SHARE, WHOLE, Several
from servewise.cli.showing import Show, answering
from servewise.errors import InputError

if TYPE_CHECKING:
    from servewise.ask.bench import Benched
    from servewise.ask.bench_options import BenchOptions

NEEDED = ("model", "hardware", "precision")
ENDED = {"whole": 0, "interrupted": 130, "server": 3, "disk": 2}


@click.command("bench")
@click.argument("url", required=False)
@click.option("--model", metavar="NAME", help="As the server calls it.  [required]")
@click.option("--hardware", metavar="TEXT", help="On what it runs: every figure carries it.  [required]")
@click.option("--precision", metavar="P", help="Of weights and KV cache, e.g. bf16 or Q4_K_M.  [required]")
@click.option("--engine", metavar="TEXT", help="Name and version; default: what the server tells.")
@click.option("--concurrency", type=Several(WHOLE), metavar="N,...", help="Closed loop of so many streams.  [1,8,32]")
@click.option("--rate", type=Several(PER_S), metavar="R,...", help="Open loop, requests/s.")
@click.option("--trace", metavar="FILE", help="Replay a trace at its own times, or at --rate.")
@click.option("--sessions", type=WHOLE, metavar="N", help="So many conversations at once, of --turns each.")
@click.option("--turns", default="4", show_default=True, metavar="D", help="Turns of a conversation.")
@click.option("--think", type=DURATION, default="0s", metavar="S", help="What a user thinks before the next request.")
@click.option("--arrivals", default="poisson", show_default=True, metavar="poisson|gamma:CV|constant|ramp:A-B,S")
@click.option("--input-tokens", default="512", show_default=True, metavar="D", help="512, 128-1024, lognormal:608,1.2")
@click.option("--output-tokens", default="128", show_default=True, metavar="D", help="Asked for; see ignore-eos.")
@click.option("--prompts", metavar="FILE", help="Your own: a text a line, or JSONL with prompt or messages.")
@click.option("--shared-prefix", type=WHOLE, metavar="N", help="Every prompt begins with N shared tokens.")
@click.option("--prefix-groups", type=WHOLE, default=1, metavar="G", help="So many different shared prefixes.  [1]")
@click.option("--prefix-share", type=SHARE, default="100%", metavar="F", help="Share of the requests with one.  [100%]")
@click.option("--duration", type=DURATION, metavar="S", help="Of each run; default 30s without --requests.")
@click.option("--requests", type=WHOLE, metavar="N", help="Of each run.")
@click.option("--warmup", type=WHOLE, metavar="N", help="Requests before each run; default: one a stream, 2 to 64.")
@click.option("--repeats", type=WHOLE, default=3, show_default=True, metavar="N", help="Runs of each condition.")
@click.option("--ci", type=SHARE, metavar="F", help="More repeats, until each 95% interval is within -/+ F (5%).")
@click.option("--api", default="chat", show_default=True, metavar="chat|completions")
@click.option("--slo", metavar="TEXT", help='E.g. "ttft_p95<=1s, tpot_p95<=50ms"; goodput counts what meets it.')
@click.option("--search", metavar="rate|concurrency", help="Find the highest that keeps the SLO.")
@click.option(
    "--prefix-cache",
    default="cold",
    show_default=True,
    metavar="cold|warm|as-is",
    help="New texts in each run, or texts that were sent before it.",
)
@click.option("--max-in-flight", type=WHOLE, metavar="N", help="Hold an open loop back at N.")
@click.option("--retries", type=WHOLE, default=3, show_default=True, metavar="N", help="Of a request that got a 429.")
@click.option("--workers", type=WHOLE, default=1, metavar="N", help="Processes that send; on Ray of each node.  [1]")
@click.option("--executor", metavar="local|ray[://HOST:PORT]", help="Where they are: here, or on a cluster's nodes.")
@click.option("--tokenizer", metavar="FILE", help="tokenizer.json: exact lengths, and a check of the server's counts.")
@click.option("--extra", metavar="JSON", help='More fields of each body, e.g. {"top_k": 1}.')
@click.option("--ignore-eos/--no-ignore-eos", default=True, show_default=True, help="Ask for answers of full length.")
@click.option("--api-key", envvar="SERVEWISE_API_KEY", metavar="KEY", help="Or in SERVEWISE_API_KEY; never kept.")
@click.option("--header", "headers", multiple=True, metavar="NAME:VALUE", help="As often as wanted.")
@click.option("--insecure", is_flag=True, help="Trust any TLS certificate.")
@click.option("--keep-alive/--no-keep-alive", default=True, show_default=True, help="Use connections again.")
@click.option("--timeout", type=DURATION, metavar="S", help="Of a whole answer.  [30min]")
@click.option("--first-token-timeout", type=DURATION, metavar="S", help="Of its first byte.  [5min]")
@click.option("--run-dir", metavar="D", help="Keep every request's record in this folder, as they end.")
@click.option("--resume", metavar="D", help="Go on with what was begun in this folder; its options are kept there.")
@click.option("--seed", type=WHOLE, default=0, show_default=True, help="Of lengths, arrivals, texts and order.")
@click.option("--quality-against", metavar="URL2", help="Same prompts to both servers: agreement, KL, both speeds.")
@click.option("--quality-precision", metavar="P", help="Of the server at URL2, e.g. q4_0.")
@click.option("--quality-model", metavar="NAME", help="As the server at URL2 calls it; default: --model.")
@click.option("--self-test", is_flag=True, help="No URL: how wrong are this client's own times on this machine?")
@answering
def command(
    show: Show,
    *,
    url: str | None,
    resume: str | None,
    self_test: bool,
    quality_against: str | None,
    quality_precision: str | None,
    quality_model: str | None,
    **options: Any,
) -> int:
    """Measure the server at URL: latencies, throughput and goodput by load, with conditions and intervals.

    Any OpenAI-compatible server: vLLM, SGLang, llama.cpp, TGI, hosted ones. Needs servewise[measure].
    """
    if any(find_spec(name) is None for name in ("httptools", "orjson")):
        raise InputError("the load client is not installed", where="bench", hint="pip install 'servewise[measure]'")
    if self_test:
        _alone("concurrency", "workers", "self_test", "as_json", "output", "api_key")
        return _self_test(show, url, options["concurrency"], options["workers"])
    if resume is not None:
        return _resume(show, url, resume, options)
    _need(url=url, **{name: options[name] for name in NEEDED})
    from servewise.ask.bench_options import BenchOptions

    if quality_against is not None:
        _need(**{"quality-precision": quality_precision})
        other = {"precision": str(quality_precision), "model": quality_model or options["model"]}
        return _quality(show, str(url), BenchOptions(**options), quality_against, BenchOptions(**(options | other)))
    if quality_precision is not None or quality_model is not None:
        raise click.UsageError("there is no second server: give --quality-against", click.get_current_context())
    from servewise.ask.bench import bench

    with progress_bar("measuring") as progress:
        found = bench(str(url), BenchOptions(**options), command=typed_line(), progress=progress)
    return _shown(show, found)


def _resume(show: Show, url: str | None, folder: str, options: dict[str, Any]) -> int:
    """What was begun, gone on with; options that are named again must be as they were."""
    from servewise.ask.bench import resume

    for name in ("quality_against", "quality_precision", "quality_model", "run_dir"):
        if _named(name):
            raise click.UsageError(f"--resume takes no --{name.replace('_', '-')}", click.get_current_context())
    given = {name: value for name, value in options.items() if _named(name)}
    with progress_bar("measuring") as progress:
        return _shown(show, resume(folder, url, given=given, progress=progress))


def _shown(show: Show, found: Benched) -> int:
    show(found.answer)
    if found.ended != "whole":
        click.echo(f"servewise: {found.reason}; what ended before is above{_once_mended(found)}", err=True)
    return ENDED[found.ended]


def _once_mended(found: Benched) -> str:
    """What to do about a disk that took no more."""
    from servewise.records.begun import to_go_on

    folder = found.answer.result["run_dir"]
    return f"; once it can be written, {to_go_on(folder)}" if found.ended == "disk" and folder else ""


def _named(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def _quality(show: Show, url: str, options: BenchOptions, other_url: str, other: BenchOptions) -> int:
    """Two builds, the same prompts."""
    from servewise.ask.quality import quality_asked

    with progress_bar("asking both") as progress:
        show(quality_asked(url, options, other_url, other, progress=progress))
    return 0


def _need(**given: Any) -> None:
    """What may only be left out for --self-test."""
    for name, value in given.items():
        if value is None:
            what = "argument 'URL'" if name == "url" else f"option '--{name}'"
            raise click.UsageError(f"missing {what}", click.get_current_context())


def _alone(*taken: str) -> None:
    """Refuse what the self-test would ignore."""
    context = click.get_current_context()
    for each in context.command.params:
        name = str(each.name)
        if name not in (*taken, "url") and _named(name):
            raise click.UsageError(f"the self-test takes no {each.opts[0]}", context)


def _self_test(show: Show, url: str | None, streams: tuple[int, ...] | None, workers: int) -> int:
    """The client against its own stand-in server."""
    if url is not None:
        raise click.UsageError("the self-test starts a server of its own: leave URL out", click.get_current_context())
    from servewise.ask.self_test import STREAMS, self_test

    with progress_bar("testing the client") as progress:
        show(self_test(streams or STREAMS, workers=workers, progress=progress))
    return 0
