"""The command lines of the servers, against the options that their makers document."""

from __future__ import annotations

import json
from pathlib import Path

from servewise.measure.servers.llamacpp import LlamaCpp
from servewise.measure.servers.own import Own
from servewise.measure.servers.vllm import Vllm


def pairs(command: tuple[str, ...]) -> dict[str, str]:
    """Each option with the word after it."""
    return {word: after for word, after in zip(command, (*command[1:], ""), strict=True) if word.startswith("--")}


def test_a_llama_server_program_gets_its_own_options(tmp_path: Path) -> None:
    """Its context is that of all slots together; batching and caching are its own switches."""
    program = tmp_path / "llama-server"
    program.write_text("#!/bin/sh\necho 'version: 123 (abc)' >&2\n")
    program.chmod(0o755)
    server = LlamaCpp(
        gguf=Path("m.gguf"), model="m", program=program, slots=8, context_tokens=512, threads=2, continuous=False
    )
    launch = server.launch(1234)
    found = pairs(launch.command)
    assert (found["--parallel"], found["--ctx-size"], found["--port"]) == ("8", "4096", "1234")
    assert "--no-cont-batching" in found
    assert "--no-cache-prompt" in found
    assert found["--cache-ram"] == "0"
    assert launch.version == "llama-server 123 (abc)"


def test_the_packaged_llama_server_gets_the_same_settings() -> None:
    """The parameters that xllamacpp names say what the program's options would."""
    server = LlamaCpp(
        gguf=Path("m.gguf"),
        model="m",
        python=Path("python"),
        slots=8,
        context_tokens=512,
        threads=2,
        prefix_cache=True,
    )
    found = json.loads(server.launch(1234).command[-1])["set"]
    assert found["n_ctx"] == 4096
    assert found["n_parallel"] == 8
    assert found["cont_batching"] is True
    assert found["cache_prompt"] is True
    assert found["cpuparams.n_threads"] == found["cpuparams_batch.n_threads"] == 2


def test_vllm_is_bound_to_cores_runs_eagerly_and_fetches_nothing() -> None:
    """Its settings for the CPU go by environment, the others by options."""
    server = Vllm(
        folder=Path("m"), model="m", python=Path("python"), slots=8, context_tokens=512, cores=(0, 1), prefix_cache=True
    )
    launch = server.launch(1234)
    assert "--enforce-eager" in launch.command
    assert "--enable-prefix-caching" in launch.command
    assert "--enable-prompt-tokens-details" in launch.command  # else its usage tells no cached tokens
    assert launch.environment["VLLM_CPU_OMP_THREADS_BIND"] == "0,1"
    assert launch.environment["HF_HUB_OFFLINE"] == "1"


def test_a_static_batch_of_the_own_engine_is_proved_by_a_full_one() -> None:
    """One request would wait for ever where a batch starts only when it is full."""
    server = Own(checkpoint=Path("m"), model="m", slots=8, context_tokens=512, threads=2, policy="static")
    assert server.launch(1).first_requests == 8
    assert "--no-prefix-cache" in server.launch(1).command


def test_the_own_engine_is_asked_for_in_options_that_serve_has() -> None:
    """Every option of the command line is one of ``servewise serve``."""
    from servewise.cli.serve import command

    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    server = Own(checkpoint=Path("m"), model="m", slots=8, context_tokens=512, threads=2)
    assert {word for word in server.launch(1).command if word.startswith("--")} <= known
