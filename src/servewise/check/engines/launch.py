"""A launch of an engine: its model and options as its parser would take them, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from servewise.check.engines.options import ENGINES, Options, Spec, is_negative, options_of, spelt
from servewise.check.finding import NOWHERE, Place
from servewise.check.reading.words import Word

NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?$")
MODELS = ("--model", "--model-path", "--hf-repo")
HOLLOW = frozenset(("...", "[...]", "…", "[OPTIONS]", "[options]"))


@dataclass(frozen=True, slots=True)
class Given:
    """An option that was given: ``name`` as the catalogue has it, ``written`` as it stands, its value or values."""

    name: str
    written: str
    values: tuple[Any, ...]
    place: Place
    spec: Spec | None

    @property
    def value(self) -> Any:
        """The first value; None for a switch."""
        return self.values[0] if self.values else None

    @property
    def at(self) -> Place:
        """Its place, named."""
        return self.place.called(self.written)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What stands around the launch: the accelerators reserved, replicas, who can reach it, memory shared.

    None where the file does not say. ``hides_variables``: a Service whose name becomes the engine's own variables.
    ``kind``: command, config, docker, compose or kubernetes.
    """

    kind: str = "command"
    accelerators: int | None = None
    replicas: int = 1
    public: str = ""
    shared_memory: bool | None = None
    liveness_only: bool = False
    affinity: bool = False
    hides_variables: str = ""
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """``model`` None where it is a variable, a placeholder or not stated."""

    engine: str
    model: str | None
    given: tuple[Given, ...]
    place: Place
    environment: Mapping[str, str] = field(default_factory=dict)
    site: Site = field(default_factory=Site)

    def option(self, *names: str) -> Given | None:
        """The last given option called one of ``names``."""
        return next((each for each in reversed(self.given) if each.name in names), None)


def launch_of(engine: str, words: Sequence[Word], place: Place, **around: Any) -> Launch:
    """The launch that ``words``, the arguments after the program, make."""
    options = options_of(engine)
    parts = list(_parts(words, options))
    given = [each for each in parts if isinstance(each, Given)]
    positional = [each for each in parts if isinstance(each, Word)]
    model = next((word.text for word in positional if word.text not in HOLLOW and "=" not in word.text), None)
    return launch_with(engine, model, tuple(given), place, **around)


def launch_with(engine: str, model: str | None, given: tuple[Given, ...], place: Place, **around: Any) -> Launch:
    """A launch whose model stands first, or in an option."""
    stated = next(
        (each.value for each in reversed(given) if each.name in ("--model", "--model-path", "--hf-repo")), None
    )
    if engine == "llamacpp" or model is None:
        model = stated if isinstance(stated, str) else None
    return Launch(engine=engine, model=_known(model), given=given, place=place, **around)


def _known(model: str | None) -> str | None:
    hollow = model is None or not model.strip() or any(mark in model for mark in "$<>{}[]") or len(model) > 500
    return None if hollow else model


def _parts(words: Sequence[Word], options: Options) -> Iterator[Given | Word]:
    at = 0
    while at < len(words):
        word = words[at]
        if not is_option(word.text):
            at += 1
            yield word
            continue
        given, used = _option(words, at, options)
        at += used
        yield given


def is_option(text: str) -> bool:
    """Whether a word is an option's name, not a value: ``-1`` and ``-0.5`` are values."""
    return len(text) > 1 and text[0] == "-" and not NUMBER.match(text) and not text[1].isspace()


def _option(words: Sequence[Word], at: int, options: Options) -> tuple[Given, int]:
    word = words[at]
    written, equals, value = word.text.partition("=")
    spec, name = _spec(written, options)
    if equals:
        return Given(name, written, (value,), word.place, spec), 1
    takes = spec.takes if spec else "one"
    if takes == "none":
        told = [each.text for each in words[at + 1 : at + 2] if each.text.lower() in ("true", "false")]
        return Given(name, written, tuple(told), word.place, spec), 1 + len(told)
    follow = [each.text for each in _values(words, at + 1)]
    values = follow if takes == "many" else follow[:1]
    return Given(name, written, tuple(values), word.place, spec), 1 + len(values)


def _values(words: Sequence[Word], at: int) -> Iterator[Word]:
    for word in words[at:]:
        if is_option(word.text):
            return
        yield word


def _spec(written: str, options: Options) -> tuple[Spec | None, str]:
    """The spec and canonical name: of ``--no-x`` that of its own, of ``--a.b`` that of ``--a``, of ``-O3`` ``-O``."""
    spec = options.find(written)
    if spec is None and "." in written and options.engine == "vllm":
        outer = options.find(written.split(".", maxsplit=1)[0])
        return outer, f"{spelt(written)}"
    if spec is None:
        known = options.engine == "vllm" and re.fullmatch(r"-O\.?\d|-O\d", written)
        return (options.find("--optimization-level"), "--optimization-level") if known else (None, spelt(written))
    named = spelt(written)
    if is_negative(named) and named in (spelt(each) for each in spec.names):
        return spec, named if named.startswith("--") else _long_negative(spec)
    return spec, spelt(spec.positive[0] if spec.positive[0].startswith("--") else spec.name)


def _long_negative(spec: Spec) -> str:
    return next((spelt(name) for name in spec.names if is_negative(name) and name.startswith("--")), spec.name)


def engine_of_keys(keys: Sequence[str]) -> str | None:
    """The engine whose options most of a config's keys are; None where fewer than half are anyone's."""
    scores = {engine: sum(_is_key(key, engine) for key in keys) for engine in ENGINES if engine != "llamacpp"}
    best = max(scores, key=lambda engine: scores[engine])
    enough = scores[best] >= max(1, len(keys) / 2)
    return best if enough else None


TRTLLM_KEYS = frozenset(
    (
        "attention_backend",
        "attn_backend",
        "backend",
        "batched_logits_processor",
        "build_config",
        "cache_transceiver_config",
        "context_parallel_size",
        "cp_config",
        "cuda_graph_config",
        "disable_overlap_scheduler",
        "dtype",
        "enable_attention_dp",
        "attention_dp_config",
        "enable_autotuner",
        "enable_chunked_prefill",
        "enable_iter_perf_stats",
        "enable_lora",
        "fast_build",
        "gpus_per_node",
        "guided_decoding_backend",
        "iter_perf_stats_interval",
        "kv_cache_config",
        "kv_connector_config",
        "load_format",
        "lora_config",
        "max_batch_size",
        "max_beam_width",
        "max_input_len",
        "max_num_tokens",
        "max_seq_len",
        "model",
        "moe_cluster_parallel_size",
        "moe_config",
        "moe_expert_parallel_size",
        "moe_tensor_parallel_size",
        "num_postprocess_workers",
        "nvfp4_gemm_config",
        "peft_cache_config",
        "perf_metrics_max_requests",
        "pipeline_parallel_size",
        "print_iter_log",
        "pytorch_backend_config",
        "quant_config",
        "return_perf_metrics",
        "revision",
        "scheduler_config",
        "sparse_attention_config",
        "speculative_config",
        "stream_interval",
        "tensor_parallel_size",
        "tokenizer",
        "torch_compile_config",
        "trust_remote_code",
        "use_cuda_graph",
        "decoding_config",
        "batching_type",
        "postprocess_tokenizer_dir",
        "multimodal_config",
    )
)


def _is_key(key: str, engine: str) -> bool:
    if engine == "trtllm":
        return key in TRTLLM_KEYS
    spec = options_of(engine).by_name.get("--" + key.replace("_", "-"))
    return spec is not None
