"""Each engine's launch by its name, and a launch as a script."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

from servewise.plan.flags.common import comments
from servewise.plan.flags.kubernetes import kubernetes
from servewise.plan.flags.llamacpp import llamacpp
from servewise.plan.flags.sglang import sglang
from servewise.plan.flags.trtllm import trtllm
from servewise.plan.flags.vllm import vllm
from servewise.plan.flags.wanted import EngineLaunch, Wanted

TARGETS: Mapping[str, Callable[[Wanted], EngineLaunch]] = {
    "vllm": vllm,
    "sglang": sglang,
    "trtllm": trtllm,
    "llamacpp": llamacpp,
    "kubernetes": kubernetes,
}


def script_of(launch: EngineLaunch) -> str:
    """A shell script: the notes as comments, the environment, the command with an option a line."""
    env = [f"export {name}={shlex.quote(value)}" for name, value in launch.env.items()]
    return "\n".join(["#!/bin/sh", *comments(launch.notes), *env, _command(launch.argv)]) + "\n"


def _command(argv: tuple[str, ...]) -> str:
    lines: list[list[str]] = [[]]
    for at, word in enumerate(argv):
        if at > 0 and word.startswith("--"):
            lines.append([])
        lines[-1].append(shlex.quote(word))
    return " \\\n    ".join(" ".join(line) for line in lines)
