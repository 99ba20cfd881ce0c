"""Room for connections: found before any traffic, or said."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from servewise.errors import InputError
from servewise.measure.bench.open_files import make_room


def test_more_streams_than_the_system_allows_are_refused() -> None:
    """Beyond the hard limit: one line with the limit and the way out."""
    with pytest.raises(InputError, match=r"ulimit -n"):
        make_room(10**9)


def test_a_low_soft_limit_is_raised_to_what_is_needed() -> None:
    """A process that may have 100 files, and could have more, gets room for 300 streams."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    code = (
        "import resource\nfrom servewise.measure.bench.open_files import make_room\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (100, {hard}))\nmake_room(300)\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert int(found.stdout) >= 300
