"""Launches are read as the engines' own parsers read them."""

from __future__ import annotations

import pytest
from tests.check.checked import launches

from servewise.check.engines.launch import Launch
from servewise.check.engines.options import options_of
from servewise.check.engines.settings import Settings


def one(text: str) -> Launch:
    """The one launch in ``text``."""
    found = launches(text)
    assert len(found) == 1
    return found[0]


def given(launch: Launch) -> dict[str, tuple[object, ...]]:
    """Its options' values by name."""
    return {each.name: each.values for each in launch.given}


def test_vllm_takes_dashes_underscores_equals_short_names_and_abbreviations() -> None:
    """FlexibleArgumentParser of vLLM takes all of these for the same options."""
    launch = one("vllm serve m -tp 2 --max_model_len=8192 --max-num-seq 4 -q fp8 --kv-cache-dtype-skip-layers 0 1 23")

    assert launch.model == "m"
    assert given(launch) == {
        "--tensor-parallel-size": ("2",),
        "--max-model-len": ("8192",),
        "--max-num-seqs": ("4",),
        "--quantization": ("fp8",),
        "--kv-cache-dtype-skip-layers": ("0", "1", "23"),
    }


def test_a_negative_number_is_a_value() -> None:
    """SGLang's ``--chunked-prefill-size -1`` switches chunks off."""
    launch = one("python3 -m sglang.launch_server --model-path m --chunked-prefill-size -1 --tp 8")
    assert given(launch)["--chunked-prefill-size"] == ("-1",)
    assert Settings(launch).tensor == 8


def test_a_switch_takes_no_value() -> None:
    """The word after ``--enforce-eager`` is the model."""
    assert one("vllm serve --enforce-eager org/model").model == "org/model"


@pytest.mark.parametrize(
    ("text", "engine", "model"),
    [
        ("python -m vllm.entrypoints.openai.api_server --model org/m", "vllm", "org/m"),
        ("docker run --gpus all vllm/vllm-openai:v0.11.0 --model org/m", "vllm", "org/m"),
        ("docker run -p 8080:8080 ghcr.io/ggml-org/llama.cpp:server-cuda -m a.gguf -c 512", "llamacpp", "a.gguf"),
        ("sglang serve --model-path org/m", "sglang", "org/m"),
        ('bash -c "trtllm-llmapi-launch trtllm-serve org/m --tp_size 8"', "trtllm", "org/m"),
        ("./build/bin/llama-server -hf org/m:Q4_K_M", "llamacpp", "org/m:Q4_K_M"),
        ("vllm serve $MODEL --port 1", "vllm", None),
    ],
)
def test_each_way_to_start_an_engine_is_found(text: str, engine: str, model: str | None) -> None:
    """By program, module and image; a variable is no model."""
    launch = one(text)
    assert (launch.engine, launch.model) == (engine, model)


def test_prose_and_comments_start_nothing() -> None:
    """A sentence about ``vllm serve`` is no launch, nor is a commented one."""
    assert launches("The `vllm serve` command starts it.\n# vllm serve model\nUse llama-server-like tools.") == ()


def test_a_config_file_is_known_by_its_keys() -> None:
    """vLLM's, SGLang's and TensorRT-LLM's YAML are told apart."""
    assert one("model: m\nmax-model-len: 100\ngpu-memory-utilization: 0.9\n").engine == "vllm"
    assert one("model-path: m\nmem-fraction-static: 0.9\nchunked-prefill-size: 512\n").engine == "sglang"
    assert one("kv_cache_config:\n  dtype: fp8\nmax_batch_size: 8\ncuda_graph_config: {}\n").engine == "trtllm"
    assert launches("name: CI\non: push\njobs: {}\n") == ()


def test_kubernetes_argv_and_shell_are_both_read() -> None:
    """A list of words and a script in a block scalar are the same launch, each at its line."""
    head = "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - name: a\n"
    words = head + '        command: ["vllm", "serve"]\n        args: ["m", "--max-num-seqs", "8"]\n'
    script = (
        head
        + '        command: ["sh", "-c"]\n        args:\n        - |\n'
        + "          vllm serve m \\\n            --max-num-seqs 8\n"
    )
    for text in (words, script):
        launch = one(text)
        assert (launch.model, given(launch)) == ("m", {"--max-num-seqs": ("8",)})
        assert launch.site.kind == "kubernetes"
        line = text.split("\n")[launch.given[0].place.line - 1]
        assert "--max-num-seqs" in line


def test_a_script_that_writes_a_manifest_holds_it_once() -> None:
    """A heredoc is read as YAML, its lines counted in the script."""
    text = (
        "cat <<EOF | kubectl apply -f -\napiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n"
        '    args: ["vllm serve m --max-num-seqs 8"]\nEOF\n'
    )
    assert one(text).given[0].place.line == 7


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "llamacpp"])
def test_option_lists_say_where_they_are_from(engine: str) -> None:
    """Each list names its version, its address and what made it."""
    options = options_of(engine)
    assert options.version
    assert options.address.startswith("https://github.com/")
    assert "python -m" in options.made_by or "by hand" in options.made_by
    assert len(options.by_name) > 35
