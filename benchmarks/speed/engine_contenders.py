"""Who decodes, each behind one face: ``measure`` gives seconds to the first tokens and seconds a decode step after."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
import transformers
from transformers.generation.configuration_utils import ContinuousBatchingConfig, GenerationConfig

from benchmarks.speed.engine_limits import seconds
from servewise.batching.policies import Continuous
from servewise.engine.checkpoint import Checkpoint
from servewise.engine.checkpoints.hf_config import hf_config
from servewise.engine.checkpoints.writing_gguf import write_gguf
from servewise.engine.running.engine import Engine
from servewise.engine.sampling_settings import SamplingSettings
from servewise.engine.step import KvCache, Model, StepInput

BLOCK_TOKENS = 16
CHUNK_TOKENS = 512  # of prompts in one step


class Contender(Protocol):
    """Something that decodes."""

    def measure(self, prompts: torch.Tensor, new: int) -> tuple[float, float]:
        """Seconds until each of ``prompts`` has its first token, and seconds a step for the other ``new`` - 1."""
        ...

    def close(self) -> None:
        """Nothing is asked any more."""
        ...


class OwnDecoder:
    """The decoder alone: sequences in lockstep, each block table interleaved with the others, as blocks grow."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def measure(self, prompts: torch.Tensor, new: int) -> tuple[float, float]:
        """As the protocol says."""
        decoding = Decoding(self._model, prompts.shape, new)
        first = seconds(lambda: decoding.prefill(prompts))
        return first, seconds(lambda: decoding.decode(new - 1)) / (new - 1)

    def close(self) -> None:
        """Nothing is held."""


class Decoding:
    """Sequences of the engine's decoder, all equally long."""

    def __init__(self, model: Model, shape: tuple[int, ...], new: int) -> None:
        self.model, self.batch = model, shape[0]
        blocks = -(-(shape[1] + new) // BLOCK_TOKENS)
        self.tables = tuple(tuple(s + self.batch * i for i in range(blocks)) for s in range(self.batch))
        self.cache: KvCache = model.new_cache(blocks * self.batch, BLOCK_TOKENS)
        self.length = 0
        self.last = torch.empty(0)

    def prefill(self, prompts: torch.Tensor) -> None:
        """The prompts, some sequences a step."""
        some = max(1, CHUNK_TOKENS // prompts.shape[1])
        parts = [self._feed(prompts[i : i + some], i) for i in range(0, self.batch, some)]
        self.last, self.length = torch.cat(parts), prompts.shape[1]

    def decode(self, steps: int) -> None:
        """That many steps."""
        for _ in range(steps):
            self.last = self._feed(self.last[:, None], 0)
            self.length += 1

    def _feed(self, tokens: torch.Tensor, start: int) -> torch.Tensor:
        """One step of ``tokens`` (sequences from the ``start``-th on, new tokens); the best next token of each."""
        count, new = tokens.shape
        tables = self.tables[start : start + count]
        positions = torch.arange(self.length, self.length + new)
        slots = torch.tensor(tables)[:, positions // BLOCK_TOKENS] * BLOCK_TOKENS + positions % BLOCK_TOKENS
        step = StepInput(
            tokens_T=tokens.flatten(),
            positions_T=positions.repeat(count),
            slots_T=slots.flatten(),
            query_starts=tuple(range(0, new * count + 1, new)),
            context_tokens=(self.length + new,) * count,
            block_tables=tables,
            rows_R=torch.arange(new - 1, new * count, new),
        )
        return self.model.step(step, self.cache).argmax(1)


class CompiledEngine:
    """The whole engine under continuous batching: planning, layout, sampling and records around the same decoder."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def measure(self, prompts: torch.Tensor, new: int) -> tuple[float, float]:
        """As the protocol says; a decode step is one that only decodes."""
        batch, length = prompts.shape
        blocks = batch * (-(-(length + new) // BLOCK_TOKENS) + 1)
        policy = Continuous(max_sequences=batch, max_batched_tokens=CHUNK_TOKENS)
        engine = Engine(self._model, policy, blocks=blocks, block_tokens=BLOCK_TOKENS)
        settings = SamplingSettings(temperature=0, max_tokens=new, ignore_end=True)
        first = seconds(lambda: _submitted(engine, prompts, settings))
        steps = len(engine.steps.seconds)
        decode = seconds(engine.run_until_idle)
        return first, decode / (len(engine.steps.seconds) - steps)

    def close(self) -> None:
        """Nothing is held."""


def _submitted(engine: Engine, prompts: torch.Tensor, settings: SamplingSettings) -> None:
    """Submit the prompts and step until each has its first token."""
    asked = [engine.submit(prompt, settings) for prompt in prompts.tolist()]
    while not all(each.output for each in asked):
        engine.step()


def transformers_model(checkpoint: Checkpoint) -> Any:
    """transformers' model with the checkpoint's weights."""
    config: Any = transformers.LlamaConfig(**hf_config(checkpoint.config, "bfloat16"))
    model: Any = transformers.LlamaForCausalLM(config)
    model.load_state_dict({name: checkpoint.weight(name) for name in checkpoint.names()}, strict=False)
    model.tie_weights()
    model.generation_config.pad_token_id = 0
    model.generation_config.eos_token_id = None
    return model.to(torch.bfloat16).train(False)


def by_difference(
    generate: Callable[[torch.Tensor, int], None], prompts: torch.Tensor, new: int
) -> tuple[float, float]:
    """Seconds to one new token, and of each further: ``new`` tokens less one token."""
    first = seconds(lambda: generate(prompts, 1))
    return first, (seconds(lambda: generate(prompts, new)) - first) / (new - 1)


class Generate:
    """transformers' generate."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def measure(self, prompts: torch.Tensor, new: int) -> tuple[float, float]:
        """As the protocol says."""
        return by_difference(self._generate, prompts, new)

    def _generate(self, prompts: torch.Tensor, new: int) -> None:
        self._model.generate(prompts, max_new_tokens=new, min_new_tokens=new, do_sample=False)

    def close(self) -> None:
        """Nothing is held."""


_settings: Any = GenerationConfig


class ContinuousBatching:
    """transformers' continuous batching, prefix sharing off."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def measure(self, prompts: torch.Tensor, new: int) -> tuple[float, float]:
        """As the protocol says."""
        return by_difference(self._generate, prompts, new)

    def _generate(self, prompts: torch.Tensor, new: int) -> None:
        batch, length = prompts.shape
        page = 32
        config = ContinuousBatchingConfig(
            page_size=page,
            num_blocks=batch * (-(-(length + new) // page) + 1),
            max_batch_tokens=CHUNK_TOKENS,
            allow_block_sharing=False,
        )
        settings: Any = _settings(max_new_tokens=new, do_sample=False, eos_token_id=-1, pad_token_id=0)
        replies = self._model.generate_batch(
            prompts.tolist(), generation_config=settings, continuous_batching_config=config
        )
        if len(replies) != batch or any(len(each.generated_tokens) != new for each in replies.values()):
            raise SystemExit("transformers' continuous batching did not give every reply whole")

    def close(self) -> None:
        """Nothing is held."""


class LlamaCpp:
    """llama.cpp's server in a Python of its own that has xllamacpp, on a BF16 GGUF written here."""

    def __init__(
        self, python: str, checkpoint: Checkpoint, folder: Path, threads: int, slots: int, context: int
    ) -> None:
        path = folder / "model-bf16.gguf"
        write_gguf(checkpoint, path, "bf16")  # type: ignore[arg-type]  # those that load_checkpoint gives
        script = Path(__file__).parent / "llamacpp_asked.py"
        command = [python, str(script), str(path), str(threads), str(slots), str(context + BLOCK_TOKENS)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.version: str = self._answer()["version"]

    def measure(self, prompts: torch.Tensor, new: int) -> tuple[float, float]:
        """As the protocol says."""
        first = self._ask(prompts, 1)
        return first, (self._ask(prompts, new) - first) / (new - 1)

    def _ask(self, prompts: torch.Tensor, new: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"prompts": prompts.tolist(), "new": new}) + "\n")
        self._process.stdin.flush()
        return float(self._answer()["seconds"])

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise SystemExit("the llama.cpp server ended before it answered")

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.terminate()
        self._process.wait()
