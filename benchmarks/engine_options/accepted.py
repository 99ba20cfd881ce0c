"""Whether vLLM's own parser takes command lines: ``PYTHON -m benchmarks.engine_options.accepted FILE`` from the root.

PYTHON is that of an environment with vLLM; FILE is the JSON of ``servewise plan --json --emit vllm``, or a list of
command lines. Ends with 1 where one is refused.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def command_lines(document: Any) -> list[list[str]]:
    """The vLLM command lines of a plan, or the list itself."""
    return document if isinstance(document, list) else [document["result"]["launch"]["vllm"]["argv"]]


def refused(argv: list[str]) -> str:
    """What vLLM's parser says against ``argv``, empty where it takes it and knows every value."""
    made = import_module("vllm.utils.argparse_utils").FlexibleArgumentParser()
    parser = import_module("vllm.entrypoints.launchers.cli_args").make_arg_parser(made)
    try:
        parser.parse_args(argv[2:])
    except SystemExit as error:
        return f"exit {error.code}"
    return ""


if __name__ == "__main__":
    answers = [(argv, refused(argv)) for argv in command_lines(json.loads(Path(sys.argv[1]).read_text("utf-8")))]
    for argv, said in answers:
        print(said or "taken", " ".join(argv))
    sys.exit(any(said for _, said in answers))
