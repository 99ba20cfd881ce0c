"""Splits and replicas: heads, stages, accelerators, shared memory, affinity."""

from __future__ import annotations

from collections.abc import Iterator

from servewise.check.engines.settings import Settings
from servewise.check.finding import Finding, Place, Severity, found
from servewise.modelspec.spec import AttentionKind, ModelSpec

BY_HEAD = (AttentionKind.FULL, AttentionKind.SLIDING, AttentionKind.CHUNKED)


def parallelism(settings: Settings, model: ModelSpec | None) -> Iterator[Finding]:
    """The mistakes of splitting in one launch; ``model`` None: heads are not known."""
    if model is not None:
        yield from _heads(settings, model)
    yield from _stages(settings)
    yield from _reserved(settings)
    yield from _shared_memory(settings)
    yield from _affinity(settings)


def _heads(settings: Settings, model: ModelSpec) -> Iterator[Finding]:
    option, degree = settings.given("tensor"), settings.tensor
    if option is None or degree < 2:
        return
    heads = {each.heads for _, each in model.attentions() if each.heads}
    if any(count % degree for count in heads):
        why = f"{model.name} has {', '.join(map(str, sorted(heads)))} attention heads, {degree} does not divide them."
        yield found("tp-does-not-divide", option.at, why, heads=max(heads), tensor=degree)
        return
    kept = [each.kv_heads for _, each in model.attentions() if each.kind in BY_HEAD and each.kv_heads]
    if kept and min(kept) < degree:
        why = f"{min(kept)} KV heads over {degree} ranks: each is kept {degree // min(kept)} times."
        yield found("kv-heads-copied", option.at, why, kv_heads=min(kept), tensor=degree)


def _stages(settings: Settings) -> Iterator[Finding]:
    option, stages, sequences = settings.given("pipeline"), settings.pipeline, settings.at_once
    if option is not None and stages > 1 and sequences and sequences < stages:
        idle = (stages - 1) / (sequences + stages - 1)
        why = f"{sequences} sequences over {stages} stages: stages idle {idle:.0%} of the time at best."
        yield found("too-few-for-pipeline", option.at, why, idle_share=idle)


def _reserved(settings: Settings) -> Iterator[Finding]:
    site, ranks = settings.launch.site, settings.tensor * settings.pipeline
    several = (settings.whole("nodes") or 1) > 1 or settings.data > 1 or settings.launch.engine == "llamacpp"
    if site.accelerators is None or several or _executor(settings) or site.accelerators == ranks:
        return
    option = settings.given("tensor") or settings.given("pipeline")
    place = option.at if option else Place(site.place.line, site.place.column)
    why = (
        f"{site.accelerators} accelerators are reserved, tp x pp is {settings.tensor} x {settings.pipeline} = {ranks}."
    )
    short = site.accelerators < ranks
    idle = "" if short else f" {site.accelerators - ranks} of them idle."
    severity: Severity = "error" if short else "warning"
    yield found("accelerators-asked-and-used", place, why + idle, severity=severity)


def _executor(settings: Settings) -> bool:
    """Ranks on other machines, or a degree that is a variable."""
    option = settings.launch.option("--distributed-executor-backend")
    stated = settings.given("tensor")
    return (option is not None and str(option.value) == "ray") or (
        stated is not None and settings.whole("tensor") is None
    )


def _shared_memory(settings: Settings) -> Iterator[Finding]:
    site, option = settings.launch.site, settings.given("tensor")
    if site.shared_memory is False and option is not None and settings.tensor > 1:
        why = f"{settings.tensor} ranks in a container with the default 64 MB of /dev/shm."
        yield found("shared-memory-small", option.at, why)


def _affinity(settings: Settings) -> Iterator[Finding]:
    site, option = settings.launch.site, settings.given("data")
    if settings.prefix_off is not None:
        return
    if option is not None and settings.data > 1:
        why = (
            f"{settings.data} data-parallel ranks with a prefix cache each, balanced by queue length: a "
            f"shared prefix is "
            f"prefilled up to {settings.data} times."
        )
        yield found("replicas-without-affinity", option.at, why)
    elif site.kind == "kubernetes" and site.replicas > 1 and not site.affinity:
        why = f"{site.replicas} replicas behind a Service without session affinity."
        yield found("replicas-without-affinity", settings.launch.place, why)
