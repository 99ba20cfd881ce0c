"""The headers of what is kept (``run.json``, ``begun.json``) as the text that stands in their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def text_of(header: Mapping[str, Any]) -> bytes:
    """``header`` as JSON that people read too. NaN is refused: no other reader takes it.

    A file's name that is no text (its bytes stand in the command line as lone surrogates) is written as JSON escapes.

    >>> text_of({"command": "bench 5 µs \\udcff"})
    b'{\\n  "command": "bench 5 \\xc2\\xb5s \\\\udcff"\\n}\\n'
    """
    text = json.dumps(header, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "backslashreplace")
