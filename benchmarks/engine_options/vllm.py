"""vLLM's own parser, asked in an environment that has vLLM: ``PYTHON -m benchmarks.engine_options.vllm`` from the root.

PYTHON is that environment's, e.g. the one that ``servewise experiment serve-small`` keeps.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.engine_options.table import Option, write

ADDRESS = "https://github.com/vllm-project/vllm/blob/v{}/vllm/entrypoints/launchers/cli_args.py"
DEPRECATED = {"--log-config-file"}


def options() -> list[Option]:
    """Every option of ``vllm serve``."""
    made = import_module("vllm.utils.argparse_utils").FlexibleArgumentParser()
    parser = import_module("vllm.entrypoints.launchers.cli_args").make_arg_parser(made)
    return [_option(each) for each in parser._actions if each.option_strings]


def _option(action: Any) -> Option:
    names = tuple(action.option_strings)
    choices = tuple(str(each) for each in action.choices or () if each is not None)
    return Option(
        names=names,
        takes=_takes(action.nargs),
        choices=choices if len(choices) < 40 else (),
        deprecated=bool(getattr(action, "deprecated", False)) or bool(DEPRECATED & set(names)),
    )


def _takes(nargs: object) -> str:
    return {None: "one", 0: "none", "?": "optional"}.get(nargs, "many")  # type: ignore[call-overload, no-any-return]


if __name__ == "__main__":
    release = str(import_module("vllm").__version__)
    write("vllm", release, ADDRESS.format(release), "python -m benchmarks.engine_options.vllm", options())
