"""The questions that measure, as functions of plain arguments: what their commands take, by the same names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from servewise.answer import Answer
from servewise.ask.bench_options import BenchOptions
from servewise.ask.deploying import Options
from servewise.ask.names import AcceleratorLike, ModelLike
from servewise.errors import InputError, UnknownName

if TYPE_CHECKING:
    from servewise.ask.serve import Service

Progress = Callable[[int, int], None]
_OF_BENCH = tuple(each.name for each in fields(BenchOptions))


def bench(
    url: str | None = None, *, resume: str | Path | None = None, progress: Progress | None = None, **options: Any
) -> Answer:
    """Measure the server at ``url``; ``options`` are those of ``BenchOptions``: model, hardware, precision and others.

    ``resume``: go on with what was begun in that run directory; options named again must be as they were.

    What ended early is in the answer, with the caveat ``partial-run``. Raises InputError and RunFailed as
    ``ask.bench.bench``.
    """
    from servewise.ask.bench import bench as measured
    from servewise.ask.bench import resume as gone_on_with

    if resume is not None:
        return gone_on_with(resume, url, given=_known(options, _OF_BENCH, "bench"), progress=progress).answer
    if url is None:
        raise InputError("lacks the server's URL", where="bench", hint="or resume, a run directory to go on with")
    return measured(url, bench_options(options), progress=progress).answer


def loop(
    url: str,
    spec: ModelLike,
    accelerator: AcceleratorLike | None = None,
    *,
    model: str,
    hardware: str,
    precision: str,
    slo: str,
    run_dir: str | Path,
    input_tokens: str = "64-192",
    output_tokens: str = "32-96",
    api: str = "chat",
    api_key: str | None = None,
    keep_alive: bool = True,
    seed: int = 0,
    streams: int | Iterable[int] = (1, 8),
    requests: int = 12,
    point_requests: int = 150,
    slots: int | None = None,
    prefix_cache: bool = False,
    tell: Callable[[str], None] | None = None,
    **options: Unpack[Options],
) -> Answer:
    """Measure the server at ``url``, calibrate, find the highest rate in ``slo``, measure that, compare.

    ``model`` is the server's name of it, ``spec`` the model itself; see ``ask.loop.loop``.
    """
    from servewise.ask.loop import loop as looped

    measured = BenchOptions(
        model=model, hardware=hardware, precision=precision, input_tokens=input_tokens, output_tokens=output_tokens,
        api=api, api_key=api_key, keep_alive=keep_alive, seed=seed,
    )  # fmt: skip
    return looped(
        url, spec, accelerator, measured, run_dir=run_dir, slo=slo,
        streams=streams if isinstance(streams, int) else tuple(streams), requests=requests,
        point_requests=point_requests, slots=slots, prefix_cache=prefix_cache, tell=tell, **options,
    ).answer  # fmt: skip


def serve(model: str, **options: Any) -> Service:
    """``model`` loaded and listening, with ``options`` of ``ServeOptions``: ``.answer`` says where, ``.run()`` serves.

    Needs servewise[engine].
    """
    from servewise.ask.serve import ServeOptions, service

    known = [each.name for each in fields(ServeOptions)]
    return service(model, ServeOptions(**_known(options, known, "serve")))


def experiment_serve_small(*, cache: str | Path | None = None, run_dir: str | Path, **options: Any) -> Answer:
    """A small model on real servers side by side; ``cache`` keeps their environments (None: ~/.cache/servewise).

    ``options`` are those of ``ask.experiment_serve_small``. Needs servewise[engine,measure].
    """
    from servewise.ask.experiment_serve_small import experiment_serve_small as experiment
    from servewise.ask.serve_small.launching import Places

    folder = Path(cache) if cache is not None else Path.home() / ".cache" / "servewise"
    program = options.pop("llama_server", None)
    llama_server = Path(program) if program is not None else None
    places = Places(environments=folder / "environments", models=folder / "written", llama_server=llama_server)
    return experiment(places=places, run_dir=Path(run_dir), **options).answer


def bench_options(options: Mapping[str, Any]) -> BenchOptions:
    """``options`` by name; UnknownName for one that ``bench`` has not, InputError for what it needs and lacks."""
    missing = [name for name in ("model", "hardware", "precision") if options.get(name) is None]
    if missing:
        raise InputError(f"lacks {', '.join(missing)}", where="bench", hint="every figure carries them")
    return BenchOptions(**_known(options, _OF_BENCH, "bench"))


def _known(options: Mapping[str, Any], known: Iterable[str], where: str) -> dict[str, Any]:
    names = tuple(known)
    for name in options:
        if name not in names:
            raise UnknownName("option", name, names, where=where, hint=f"one of {', '.join(names)}")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
