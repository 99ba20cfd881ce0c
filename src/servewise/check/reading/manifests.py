"""Launches in Kubernetes manifests and compose files, with what stands around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from servewise.check.engines.launch import Launch, Site, is_option, launch_of
from servewise.check.engines.settings import whole_of
from servewise.check.finding import Place
from servewise.check.reading.commands import command_launches
from servewise.check.reading.words import Lines, Word, words_from
from servewise.check.reading.yaml_tree import Tree, block_offset

SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash", "-c", "-lc", "-ec", "-euc")
IMAGES = {"vllm": ("vllm/vllm-openai", "vllm-openai"), "llamacpp": ("llama.cpp:server",)}
GPUS = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "google.com/tpu", "gpu.intel.com/i915")
PUBLIC_SERVICES = ("LoadBalancer", "NodePort")


def is_manifest(trees: Sequence[Tree]) -> bool:
    """Whether a document is a Kubernetes object or a compose file."""
    return any(_kind(tree) or _services(tree) for tree in trees)


def manifest_launches(text: str, trees: Sequence[Tree]) -> tuple[Launch, ...]:
    """Every launch in the containers of ``trees``."""
    public = next((words for tree in trees if (words := _public(tree))), "")
    affinity = any(tree.get("spec", "sessionAffinity") == "ClientIP" for tree in trees)
    services = [str(tree.get("metadata", "name")) for tree in trees if _kind(tree) == "Service"]
    found: list[Launch] = []
    for tree in trees:
        for pod, replicas in _pods(tree):
            for container in (*pod.items("containers"), *pod.items("initContainers")):
                site = replace(
                    _site(container, pod, replicas, public, affinity), hides_variables=_hiding(services, pod)
                )
                found += _container(text, container, site)
        for service in _services(tree):
            found += _container(text, service, _compose(service))
    return tuple(found)


def _hiding(services: Sequence[str], pod: Tree) -> str:
    """A Service named vllm puts VLLM_PORT=tcp://... into every pod of its namespace, unless service links are off."""
    return "vllm" if "vllm" in services and pod.get("enableServiceLinks") is not False else ""


def _kind(tree: Tree) -> str:
    kind = tree.get("kind") if isinstance(tree.value, Mapping) else None
    return kind if isinstance(kind, str) and tree.get("apiVersion") is not None else ""


def _services(tree: Tree) -> list[Tree]:
    table = tree.child("services") if isinstance(tree.value, Mapping) else None
    if table is None or not isinstance(table.value, Mapping):
        return []
    return [each for each in table.children.values() if isinstance(each.value, Mapping) and "image" in each.value]


def _pods(tree: Tree) -> Iterator[tuple[Tree, int]]:
    """Pod specs with their replicas, in any workload; those of custom resources are found by their containers."""
    replicas = whole_of(tree.get("spec", "replicas")) or 1
    stack = [tree] if _kind(tree) else []
    while stack:
        each = stack.pop()
        if isinstance(each.value, Mapping) and isinstance(each.value.get("containers"), list):
            yield each, replicas
        stack += [child for child in each.children.values() if child.children]


def _public(tree: Tree) -> str:
    if _kind(tree) == "Service" and tree.get("spec", "type") in PUBLIC_SERVICES:
        return f"a Service of type {tree.get('spec', 'type')}"
    return f"an {_kind(tree)}" if _kind(tree) in ("Ingress", "HTTPRoute") else ""


def _site(container: Tree, pod: Tree, replicas: int, public: str, affinity: bool) -> Site:
    resources = container.get("resources") or {}
    wanted = resources.get("limits") or resources.get("requests") or {} if isinstance(resources, Mapping) else {}
    counts = [whole_of(wanted.get(name)) for name in GPUS] if isinstance(wanted, Mapping) else []
    known = [count for count in counts if count is not None]
    probes = container.value if isinstance(container.value, Mapping) else {}
    return Site(
        kind="kubernetes",
        accelerators=known[0] if known else None,
        replicas=replicas,
        public=public,
        shared_memory=_shared(container, pod),
        liveness_only="livenessProbe" in probes and "startupProbe" not in probes,
        affinity=affinity,
        place=container.at,
    )


def _shared(container: Tree, pod: Tree) -> bool:
    mounts = [each.value for each in container.items("volumeMounts") if isinstance(each.value, Mapping)]
    return pod.get("hostIPC") is True or any(each.get("mountPath") == "/dev/shm" for each in mounts)


def _compose(service: Tree) -> Site:
    devices = list(service.items("deploy", "resources", "reservations", "devices"))
    listed = devices[0].get("device_ids") if devices else None
    count = len(listed) if isinstance(listed, list) else whole_of(devices[0].get("count")) if devices else None
    table = service.value
    shared = "shm_size" in table or table.get("ipc") == "host"
    return Site(kind="compose", accelerators=count, shared_memory=shared, place=service.at)


def _container(text: str, container: Tree, site: Site) -> list[Launch]:
    environment = dict(_environment(container))
    words = [*_words(container, "command"), *_words(container, "entrypoint"), *_words(container, "args")]
    scripts = [each for each in words if "\n" in each.text or " " in each.text]
    programs = [each for each in words if each.text in SHELLS]
    if programs or (scripts and len(words) == 1):
        found = [launch for each in scripts for launch in _script(text, each, site, environment)]
        if found:
            return found
    return _argv(container, words, site, environment)


def _script(text: str, word: Word, site: Site, environment: Mapping[str, str]) -> list[Launch]:
    block = block_offset(text, word.place)
    place = Place(word.place.line + 1, 1) if block else Place(word.place.line, word.place.column + 1)
    return list(command_launches(word.text, place=place, site=site, environment=environment))


def _argv(container: Tree, words: Sequence[Word], site: Site, environment: Mapping[str, str]) -> list[Launch]:
    """Words as the list that they are: after the program, or all of them where the image runs the engine."""
    for at, word in enumerate(words):
        engine, skip = _program([each.text for each in words[at : at + 3]])
        if engine:
            here = words[at + skip :]
            return [launch_of(engine, here, word.place, site=site, environment=environment)]
    image = str(container.get("image") or "")
    engine = next((name for name, marks in IMAGES.items() if any(mark in image for mark in marks)), "")
    started = engine and (not words or is_option(words[0].text) or not _words(container, "command"))
    return [launch_of(engine, words, container.at, site=site, environment=environment)] if started else []


def _program(words: Sequence[str]) -> tuple[str, int]:
    """The engine that a list of words starts, and how many of them say so."""
    joined = " ".join(words)
    for begin, engine in (
        ("vllm serve", "vllm"),
        ("-m vllm.entrypoints.openai.api_server", "vllm"),
        ("-m sglang.launch_server", "sglang"),
        ("sglang serve", "sglang"),
        ("trtllm-serve", "trtllm"),
        ("llama-server", "llamacpp"),
    ):
        if joined == begin or joined.startswith(begin + " "):
            return engine, len(begin.split())
    first = words[0].rsplit("/", 1)[-1] if words else ""
    return ("llamacpp", 1) if first == "llama-server" else ("trtllm", 1) if first == "trtllm-serve" else ("", 0)


def _words(container: Tree, key: str) -> list[Word]:
    child = container.child(key)
    if child is None:
        return []
    if isinstance(child.value, list):
        return [Word(_text(each.value), each.at) for each in child.children.values()]
    text = child.value if isinstance(child.value, str) else ""
    return list(words_from(text.replace("\n", " "), 0, Lines(text, child.at.line, child.at.column)))


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _environment(container: Tree) -> Iterator[tuple[str, str]]:
    for each in container.items("env"):
        name, value = each.get("name"), each.get("value")
        if isinstance(name, str) and isinstance(value, (str, int, float)):
            yield name, str(value)
    table = container.get("environment")
    if isinstance(table, Mapping):
        yield from ((str(name), _text(value)) for name, value in table.items())
    for each in container.items("environment"):
        if isinstance(each.value, str) and "=" in each.value:
            name, _, value = each.value.partition("=")
            yield name, value
