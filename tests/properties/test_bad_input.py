"""Bad input, whatever it is: exit code 2, one clear line on stderr, nothing on stdout, nothing half-written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from servewise.cli.main import servewise

MODEL = "llama-2-13b --accelerator a100-80gb"
WORKLOAD = 'requests=20\n[arrivals]\nkind="poisson"\nrate_per_s=1.0\n'
WORKLOAD += '[prompt_tokens]\nkind="fixed"\ntokens=20\n[output_tokens]\nkind="fixed"\ntokens=20\n'
FILES: dict[str, str | bytes] = {
    "w.toml": WORKLOAD,
    "empty": "",
    "empty.json": "",
    "truncated.json": '{"architectures": ["LlamaForCausalLM"], "hidden_si',
    "list.json": "[1, 2, 3]",
    "deep.json": "[" * 100_000,
    "unknown.json": '{"architectures": ["WhoKnowsForCausalLM"], "hidden_size": 10}',
    "lacking.json": '{"architectures": ["LlamaForCausalLM"], "hidden_size": 4096}',
    "negative.json": json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": -4096,
        "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 10, "vocab_size": 10}),
    "binary.json": b"\xff\xfe\x00\x01" * 100,
    "nan.json": '{"architectures": ["LlamaForCausalLM"], "hidden_size": NaN}',
    "cut.gguf": b"GGUF\x03\x00\x00\x00\x01",
    "huge.gguf": b"GGUF\x03\x00\x00\x00" + b"\xff" * 16,
    "broken.toml": "[arrivals\nkind=",
    "unknown.toml": WORKLOAD + "[frobnicate]\nx = 1\n",
    "zero.toml": WORKLOAD.replace("rate_per_s=1.0", "rate_per_s=0"),
    "nan.toml": WORKLOAD.replace("rate_per_s=1.0", "rate_per_s=nan"),
    "negative.toml": WORKLOAD.replace("tokens=20", "tokens=-20"),
    "disorder.csv": "arrival_s,prompt_tokens,output_tokens\n5,10,10\n1,10,10\n",
    "columns.csv": "time,in,out\n1,2,3\n",
    "words.csv": "arrival_s,prompt_tokens,output_tokens\n1,ten,10\n",
    "minus.csv": "arrival_s,prompt_tokens,output_tokens\n1,-10,10\n",
    "header.csv": "arrival_s,prompt_tokens,output_tokens\n",
    "once.csv": "arrival_s,prompt_tokens,output_tokens\n1,10,10\n",
    "cut.jsonl": '{"arrival_s": 1, "prompt_tokens": 10, "outp',
    "chip.toml": "peak_flops = -1\nbandwidth = 2e12\nmemory = 8e10\n",
    "half.toml": "peak_flops = 1e12\n",
    "odd.toml": "peak_flops = 1e12\nbandwidth = 2e12\nmemory = 8e10\ncolour = 'red'\n",
    "prices.toml": "a100-80gb = -3\n",
    "document.json": '{"schema": "servewise.size/99", "conditions": {}, "result": {}}',
    "text.log": "nothing of memory here\n",
}  # fmt: skip
CASES = [
    # models
    "size no-such-model --accelerator a100-80gb",
    "size ./nowhere --accelerator a100-80gb",
    "size empty.json --accelerator a100-80gb",
    "size truncated.json --accelerator a100-80gb",
    "size list.json --accelerator a100-80gb",
    "size deep.json --accelerator a100-80gb",
    "size unknown.json --accelerator a100-80gb",
    "size lacking.json --accelerator a100-80gb",
    "size negative.json --accelerator a100-80gb",
    "size binary.json --accelerator a100-80gb",
    "size nan.json --accelerator a100-80gb",
    "size cut.gguf --accelerator a100-80gb",
    "size huge.gguf --accelerator a100-80gb",
    "size . --accelerator a100-80gb",
    # accelerators
    "size llama-2-13b",
    "size llama-2-13b --peak-flops 1T",
    "size llama-2-13b --accelerator a100-8gb",
    "size llama-2-13b --accelerator chip.toml",
    "size llama-2-13b --accelerator half.toml",
    "size llama-2-13b --accelerator odd.toml",
    "size llama-2-13b --accelerator broken.toml",
    "size llama-2-13b --accelerator nowhere.toml",
    f"size {MODEL} --bandwidth 0",
    f"size {MODEL} --memory -80GB",
    f"size {MODEL} --memory nan",
    f"size {MODEL} --peak-flops 1e30",
    f"size {MODEL} --peak-flops inf",
    # deployments
    f"size {MODEL} --weights fp7",
    f"size {MODEL} --kv int4:0",
    f"size {MODEL} --weights int4:nan",
    f"size {MODEL} --engine vlm",
    f"size {MODEL} --tp 0",
    f"size {MODEL} --tp 1000000",
    f"size {MODEL} --count 3 --tp 2",
    f"size {MODEL} --pp 41",
    f"size {MODEL} --kv-heads 7",
    f"size {MODEL} --context 0",
    f"size {MODEL} --context -1",
    f"size {MODEL} --context 1e30",
    f"size {MODEL} --memory-utilization 1.5",
    f"size {MODEL} --memory-utilization 0",
    f"size {MODEL} --max-batched-tokens 0",
    f"size {MODEL} --log nowhere.log",
    f"size {MODEL} --log text.log",
    f"size {MODEL} --log .",
    f"size {MODEL} --output nowhere/x.json",
    f"size {MODEL} --output .",
    # steps
    f"steptime {MODEL} --batch 0",
    f"steptime {MODEL} --batch 1,,2",
    f"steptime {MODEL} --batch 1e9",
    f"steptime {MODEL} --context 0",
    f"steptime {MODEL} --phase decod",
    f"steptime {MODEL} --estimator calibratd",
    f"steptime {MODEL} --estimator nowhere.csv",
    f"steptime {MODEL} --estimator columns.csv",
    # simulations
    f"simulate {MODEL} --workload nowhere",
    f"simulate {MODEL} --workload azur-conv",
    f"simulate {MODEL} --workload broken.toml",
    f"simulate {MODEL} --workload unknown.toml",
    f"simulate {MODEL} --workload zero.toml",
    f"simulate {MODEL} --workload nan.toml",
    f"simulate {MODEL} --workload negative.toml",
    f"simulate {MODEL} --workload disorder.csv",
    f"simulate {MODEL} --workload columns.csv",
    f"simulate {MODEL} --workload words.csv",
    f"simulate {MODEL} --workload minus.csv",
    f"simulate {MODEL} --workload header.csv",
    f"simulate {MODEL} --workload once.csv",
    f"simulate {MODEL} --workload cut.jsonl",
    f"simulate {MODEL} --workload empty",
    f"simulate {MODEL} --workload w.toml --rate 0",
    f"simulate {MODEL} --workload w.toml --rate -1",
    f"simulate {MODEL} --workload w.toml --rate nan",
    f"simulate {MODEL} --workload w.toml --rate 1e99",
    f"simulate {MODEL} --workload w.toml --policy fifo",
    f"simulate {MODEL} --workload w.toml --policy ,",
    f"simulate {MODEL} --workload w.toml --slots 0",
    f"simulate {MODEL} --workload w.toml --slots 100 --max-batched-tokens 10",
    f"simulate {MODEL} --workload w.toml --policy dynamic --window 0",
    f"simulate {MODEL} --workload w.toml --seed -1",
    f"simulate {MODEL} --workload w.toml --seeds 0",
    f"simulate {MODEL} --workload w.toml --slo ttft",
    f"simulate {MODEL} --workload w.toml --slo ttft_p95<=0s",
    f"simulate {MODEL} --workload w.toml --slo ttft_p95<=1",
    f"simulate {MODEL} --workload w.toml --processes 0",
    f"simulate {MODEL} --workload w.toml --run-dir .",
    "simulate llama-2-70b --accelerator t4 --workload w.toml",
    # speculation
    "speculate --acceptance 1.5 --draft-cost 0.1",
    "speculate --acceptance nan --draft-cost 0.1",
    "speculate --acceptance 0.5 --draft-cost -1",
    "speculate --acceptance 0.5",
    "speculate --acceptance 0.5 --draft-cost 0.1 --max-k 0",
    "speculate --acceptance 0.5 --draft-cost 0.1 --max-k 1000000",
    f"speculate {MODEL} --acceptance 0.5 --draft no-such-model",
    f"speculate {MODEL} --acceptance 0.5 --draft tinyllama-1.1b --batch 0",
    f"speculate {MODEL} --acceptance 0.5 --draft tinyllama-1.1b --context 3",
    # prefixes
    "prefix",
    "prefix nowhere.jsonl",
    "prefix w.toml",
    "prefix azure-conv",
    "prefix mooncake-conv --block 0",
    "prefix mooncake-conv --ttl 0",
    "prefix mooncake-conv --price -1",
    "prefix mooncake-conv --capacity 0",
    "prefix --prompt-tokens 1000 --calls 10",
    "prefix --prompt-tokens 1000 --calls 10 --price nan",
    "prefix --prompt-tokens 1000 --calls 10 --price 1 --hit-rate 2",
    "prefix --prompt-tokens 1000 --calls 10 --price 1 --terms antropic",
    # plans
    "plan llama-2-13b --accelerators a100-80 --workload w.toml --slo ttft_p95<=1s",
    "plan llama-2-13b --accelerators , --workload w.toml --slo ttft_p95<=1s",
    "plan llama-2-13b --accelerators a100-80gb --workload nowhere --slo ttft_p95<=1s",
    "plan llama-2-13b --accelerators a100-80gb --workload once.csv --slo ttft_p95<=1s",
    "plan llama-2-13b --accelerators a100-80gb --workload w.toml --slo ttft_p96<=1s",
    "plan llama-2-13b --accelerators a100-80gb --workload w.toml --slo ttft_p95<=1s --rate 0",
    "plan llama-2-13b --accelerators a100-80gb --workload w.toml --slo ttft_p95<=1s --counts 0",
    "plan llama-2-13b --accelerators a100-80gb --workload w.toml --slo ttft_p95<=1s --counts 2 --pp 3",
    "plan llama-2-13b --accelerators a100-80gb --workload w.toml --slo ttft_p95<=1s --weights fp7",
    "plan llama-2-13b --accelerators a100-80gb --workload w.toml --slo ttft_p95<=1s --prices prices.toml",
    "plan llama-2-13b --accelerators a100-80gb --workload w.toml --slo ttft_p95<=1s --prices nowhere.toml",
    "plan llama-2-13b --accelerators a100-80gb --workload w.toml --slo ttft_p95<=1s --processes 0",
    # reports and the rest
    "report --output r.html",
    "report nowhere.json --output r.html",
    "report document.json --output r.html",
    "report truncated.json --output r.html",
    "report binary.json --output r.html",
    "report deep.json --output r.html",
    "report . --output r.html",
    "report document.json --output nowhere/r.html",
    "demo --report nowhere/r.html",
    "frobnicate",
    "--frobnicate",
]


def invoke(line: str) -> Result:
    """Run a command as written on one line."""
    return CliRunner().invoke(servewise, line.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every file that the cases name, entered."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("line", CASES)
def test_bad_input_is_one_clear_line(line: str, folder: Path) -> None:
    """Each case: exit code 2, one line that begins with the program's name, no traceback, no file made or changed."""
    found = invoke(line)

    assert found.exit_code == 2, (found.exit_code, found.output, found.exception)
    assert found.stdout == ""
    assert found.stderr.startswith("servewise: ")
    assert found.stderr.count("\n") == 1
    assert 20 < len(found.stderr) < 600
    assert not any(word in found.stderr for word in ("Traceback", "Error:", "object at 0x", "errno"))
    assert {each.name for each in folder.iterdir()} == set(FILES)


def test_a_traceback_is_kept_for_our_own_defects(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no user can mend is not dressed up as bad input: a defect keeps its traceback."""

    def defect(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("servewise.ask.size.size", defect)

    assert isinstance(invoke(f"size {MODEL}").exception, ZeroDivisionError)


WORDS = """size steptime simulate speculate prefix plan --accelerator --context --batch --tp --pp --kv --weights --rate
--slo --json --check --memory --engine a100-80gb t4 llama-2-13b w.toml 0 -1 1 nan inf 1e99 8k 80GB , 1,2 fp8 --
--help"""
words_typed = st.sampled_from(WORDS.split()) | st.text("abcXYZ012-=/.\\\x00é\n ", max_size=12)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words_typed, max_size=9))
def test_any_line_of_words_is_answered_or_refused(folder: Path, words: list[str]) -> None:
    """Whatever is typed, the exit code is one of CONTRACT's and no traceback reaches the user."""
    found = CliRunner().invoke(servewise, words)

    assert found.exit_code in (0, 1, 2), (words, found.output, found.exception)
    assert found.exception is None or isinstance(found.exception, SystemExit), (words, found.exception)
    if found.exit_code == 2:
        assert found.stderr.count("\n") == 1, words
