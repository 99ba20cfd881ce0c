"""Every `$ servewise ...` line of the README and the documents is a command that works as printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from servewise.cli.main import servewise

ROOT = Path(__file__).parents[2]
SLOW = ("simulate", "plan", "study", "demo")
VLLM_LOG = """\
INFO 11-29 12:00:01 [gpu_model_runner.py:2653] Model loading took 14.9889 GiB and 4.211 seconds
INFO 11-29 12:00:09 [gpu_worker.py:298] Available KV cache memory: 5.05 GiB
INFO 11-29 12:00:09 [kv_cache_utils.py:1087] GPU KV cache size: 41,408 tokens
INFO 11-29 12:00:09 [kv_cache_utils.py:1091] Maximum concurrency for 32,768 tokens per request: 1.26x
"""
CONFIG = """\
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
 "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
 "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "tie_word_embeddings": false, "torch_dtype": "bfloat16"}
"""


def examples() -> list[str]:
    """The commands of all console blocks, continued lines joined, comments off."""
    found: list[str] = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
            joined = block.replace("\\\n", " ")
            found += [line[2:] for line in joined.splitlines() if line.startswith("$ servewise")]
    return list(dict.fromkeys(found))


def marked(command: str) -> object:
    """The command as a parameter, the ones that simulate marked slow."""
    words = shlex.split(command, comments=True)
    slow = len(words) > 1 and words[1] in SLOW
    return pytest.param(words[1:], id=" ".join(words[1:4]), marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("words", [marked(each) for each in examples()])
def test_documented_commands_work(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command exits with 0 in a folder that holds a config of the user's own and a start-up log."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-model").mkdir()
    (tmp_path / "my-model" / "config.json").write_text(CONFIG)
    (tmp_path / "vllm-startup.log").write_text(VLLM_LOG)
    result = CliRunner().invoke(servewise, words)

    assert result.exit_code == 0, result.output


def test_there_are_examples() -> None:
    """The README shows commands, so that the test above cannot pass on nothing."""
    assert len(examples()) >= 8
