"""Text lines of a trace, plain or gzipped, read one at a time and bounded, so that no file can exhaust memory."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from servewise.errors import InputError

MAX_LINE = 2**25  # characters; a prompt of ten million tokens is longer than any model reads
GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def opened(path: Path) -> Iterator[Iterator[str]]:
    """The lines of ``path``; whatever is wrong with the file becomes an InputError that names it."""
    try:
        with _binary(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text:
            yield _bounded(text, path)
    except UnicodeDecodeError as error:
        raise InputError("is not text in UTF-8", where=str(path), hint="give a CSV or JSONL trace") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError("is a damaged or truncated gzip file", where=str(path), hint="fetch it again") from error
    except FileNotFoundError as error:
        raise InputError("no such file", where=str(path)) from error
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=str(path)) from error


def _binary(path: Path) -> BinaryIO:
    if "\0" in str(path):
        raise InputError("the name of a file cannot hold a null character")
    with path.open("rb") as raw:
        packed = raw.read(2) == GZIP_MAGIC
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def _bounded(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    number = 0
    while line := text.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE:
            raise InputError("the line is over 32 million characters", where=f"{path}:{number}")
        yield line
