"""An engine's config file as a launch: its keys are the parser's options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from servewise.check.engines.launch import Given, Launch, engine_of_keys, launch_with
from servewise.check.engines.options import options_of, spelt
from servewise.check.finding import Place
from servewise.check.reading.yaml_tree import Tree

NESTED = {
    ("kv_cache_config", "free_gpu_memory_fraction"): "--free-gpu-memory-fraction",
    ("kv_cache_config", "dtype"): "--kv-cache-dtype",
    ("kv_cache_config", "enable_block_reuse"): "--enable-block-reuse",
    ("kv_cache_config", "max_tokens"): "--max-tokens-in-cache",
    ("quant_config", "quant_algo"): "--quantization",
    ("quant_config", "kv_cache_quant_algo"): "--kv-cache-dtype",
}


def config_launch(tree: Tree, engine: str | None = None) -> Launch | None:
    """The launch of a config's mapping; None where its keys are no engine's."""
    if not isinstance(tree.value, Mapping) or not tree.value:
        return None
    keys = [str(key) for key in tree.value]
    found = engine or engine_of_keys(keys)
    if found is None:
        return None
    given = tuple(_givens(tree, found))
    model = tree.value.get("model") or tree.value.get("model_tag") or tree.value.get("model-path")
    name = model if isinstance(model, str) else None
    return launch_with(found, name, given, Place(1, 1))


def _givens(tree: Tree, engine: str) -> Iterator[Given]:
    options = options_of(engine)
    for key, value in tree.value.items():
        written, place = str(key), tree.place(key)
        name = "--" + spelt("--" + written)[2:]
        spec = options.by_name.get(name)
        named = spelt(spec.positive[0]) if spec and spec.positive[0].startswith("--") else (spec.name if spec else name)
        if value is False and spec is not None and spec.takes == "none":
            negative = "--no-" + named[2:]
            if negative in options.by_name:
                yield Given(negative, written, (), place, spec)
            continue
        if isinstance(value, Mapping) and engine == "trtllm":
            yield from _inner(written, value, place)
        yield Given(spelt(named), written, _values(value), place, spec)


def _inner(outer: str, value: Mapping[Any, Any], place: Place) -> Iterator[Given]:
    for (table, key), name in NESTED.items():
        if table == outer and key in value:
            yield Given(name, f"{outer}.{key}", (value[key],), place, None)


def _values(value: Any) -> tuple[Any, ...]:
    if value is None or value is True:
        return ()
    return tuple(value) if isinstance(value, list) else (value,)
