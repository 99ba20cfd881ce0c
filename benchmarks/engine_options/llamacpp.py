"""llama-server's options from its documentation: ``python -m benchmarks.engine_options.llamacpp README VERSION``.

README is ``tools/server/README.md``, whose table llama.cpp writes from its own parser (``llama-gen-docs``).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from benchmarks.engine_options.table import Option, write

ADDRESS = "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"
ROW = re.compile(r"^\| `(-[^`]*)` \| (.*) \|$")
NAME = re.compile(r"-{1,2}[A-Za-z][\w-]*")


def options(readme: Path) -> list[Option]:
    """Every option of ``llama-server``."""
    rows = (ROW.match(line) for line in readme.read_text(encoding="utf-8").splitlines())
    return [_option(row.group(1).replace("\\|", "|"), row.group(2)) for row in rows if row]


def _option(head: str, words: str) -> Option:
    """``-c, --ctx-size N``: names, then what it takes."""
    parts = head.split(", ")
    names = [match.group() for part in parts if (match := NAME.match(part))]
    last = parts[len(names) - 1]
    value = last[len(names[-1]) :].strip()
    choices = re.fullmatch(r"[\[{<]([\w|,+-]+)[\]}>]", value)
    takes = "none" if not value else "many" if value == "START END" else "one"
    listed = tuple(re.split(r"[|,]", choices.group(1))) if choices and re.search(r"[|,]", value) else ()
    return Option(
        names=tuple(names),
        takes=takes,
        choices=listed if "..." not in value and "0" not in listed else (),
        deprecated="DEPRECATED" in words,
    )


if __name__ == "__main__":
    made_by = "python -m benchmarks.engine_options.llamacpp README VERSION"
    write("llamacpp", sys.argv[2], ADDRESS, made_by, options(Path(sys.argv[1])))
