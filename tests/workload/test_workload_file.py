"""The workload file: what each key means, and that unknown or senseless ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from servewise.errors import InputError
from servewise.workload.arrivals import Constant, Gamma, Poisson, Ramp
from servewise.workload.conversations import Conversations
from servewise.workload.lengths import Empirical, Fixed, Lognormal, Uniform
from servewise.workload.prefix import SharedPrefix
from servewise.workload.synthetic import ClosedLoop, Synthetic
from servewise.workload.traces.trace import Trace
from servewise.workload.workload_file import read_workload

TEMPLATE = """
requests = 100
[arrivals]
{arrivals}
[prompt_tokens]
{prompt}
[output_tokens]
kind = "fixed"
tokens = 8
"""
FIXED = 'kind = "fixed"\ntokens = 64'
POISSON = 'kind = "poisson"\nrate_per_s = 2'


def read(folder: Path, text: str) -> Synthetic | ClosedLoop | Conversations | Trace:
    """The workload that ``text`` describes."""
    path = folder / "w.toml"
    path.write_text(text)
    return read_workload(path)


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        (POISSON, Poisson(2.0)),
        ('kind = "constant"\nrate_per_s = 0.5', Constant(0.5)),
        ('kind = "gamma"\nrate_per_s = 2\ncv = 3', Gamma(2.0, 3.0)),
        ('kind = "ramp"\nstart_per_s = 0\nend_per_s = 4\nover_s = 60', Ramp(0.0, 4.0, 60.0)),
    ],
)
def test_every_kind_of_arrivals(tmp_path: Path, arrivals: str, expected: object) -> None:
    """Each kind gives the process of its name with its numbers."""
    found = read(tmp_path, TEMPLATE.format(arrivals=arrivals, prompt=FIXED))
    assert isinstance(found, Synthetic)
    assert (found.arrivals, found.count, found.output_lengths) == (expected, 100, Fixed(8))


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (FIXED, Fixed(64)),
        ('kind = "uniform"\nlow = 3\nhigh = 9', Uniform(3, 9)),
        ('kind = "lognormal"\nmedian = 58\nsigma = 0.77', Lognormal(58, 0.77)),
        ('kind = "lognormal"\nmedian = 608\nmean = 968\ncap = 4096', Lognormal.from_mean(608, 968, cap=4096)),
        ('kind = "lognormal"\nmedian = 58\np95 = 204', Lognormal.from_percentile(58, 204)),
        ('kind = "empirical"\nvalues = [1, 2, 2]', Empirical([1, 2, 2])),
    ],
)
def test_every_kind_of_lengths(tmp_path: Path, prompt: str, expected: object) -> None:
    """Each kind gives the distribution of its name with its numbers."""
    found = read(tmp_path, TEMPLATE.format(arrivals=POISSON, prompt=prompt))
    assert isinstance(found, Synthetic)
    assert found.prompt_lengths == expected


def test_closed_loop_and_prefix(tmp_path: Path) -> None:
    """``closed`` gives a closed loop; a prefix table gives shared prefixes with their defaults."""
    text = TEMPLATE.format(arrivals='kind = "closed"\nconcurrency = 8\nthink_s = 1.5', prompt=FIXED)
    found = read(tmp_path, text + "[prefix]\ngroups = 4\ntokens = 512\n")
    assert found == ClosedLoop(8, 1.5, Fixed(64), Fixed(8), 100, SharedPrefix(4, 512))


def test_a_trace_is_found_beside_the_file_and_scaled(tmp_path: Path) -> None:
    """A trace's path counts from the workload file; rate and number of requests are set."""
    (tmp_path / "t.csv").write_text("arrival_s,prompt_tokens,output_tokens\n0,1,1\n1,2,2\n")
    found = read(tmp_path, 'title = "mine"\nrequests = 4\n[trace]\npath = "t.csv"\nrate_per_s = 4.0\n')
    assert isinstance(found, Trace)
    assert (found.name, len(found)) == ("mine", 4)
    assert found.rate_per_s == pytest.approx(4.0)


GOOD = TEMPLATE.format(arrivals=POISSON, prompt=FIXED)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (GOOD.replace("rate_per_s", "rate"), "unknown key 'rate'.*rate_per_s"),
        (GOOD.replace("requests", "request"), "unknown key 'request'.*requests"),
        (GOOD + "speed = 3\n", "unknown key 'speed'"),
        (GOOD.replace("poisson", "possion"), "unknown kind 'possion'.*poisson"),
        (GOOD.replace('"poisson"', "7"), "unknown kind '7'"),
        (GOOD.replace("rate_per_s = 2", "rate_per_s = 0"), "arrival rate"),
        (GOOD.replace("rate_per_s = 2", "rate_per_s = nan"), "rate_per_s must be a number"),
        (GOOD.replace("rate_per_s = 2", 'rate_per_s = "2"'), "rate_per_s must be a number"),
        (GOOD.replace("rate_per_s = 2\n", ""), "needs rate_per_s"),
        (GOOD.replace("requests = 100", "requests = 0"), "requests"),
        (GOOD.replace("requests = 100", "requests = 1.5"), "requests"),
        (GOOD.replace("requests = 100", "duration_s = -1"), "duration"),
        (GOOD.replace("requests = 100", ""), "needs an end"),
        (GOOD.replace("tokens = 64", "tokens = 0"), "tokens"),
        (GOOD.replace("[prompt_tokens]", "[prompt]"), "unknown key 'prompt'"),
        (GOOD.replace("[output_tokens]\n", "[prefix]\n"), r"needs a table \[output_tokens\]"),
        (GOOD.replace("[output_tokens]", "output_tokens = 7\n[prefix]"), "unknown key|needs a table"),
        (GOOD.replace(POISSON, 'kind = "closed"\nconcurrency = 8').replace("requests = 100", ""), "closed loop"),
        (GOOD.replace(FIXED, 'kind = "lognormal"\nmedian = 5'), "one of sigma, mean, p95"),
        (GOOD.replace(FIXED, 'kind = "lognormal"\nmedian = 5\nsigma = 1\nmean = 9'), "one of sigma, mean, p95"),
        (GOOD.replace(FIXED, 'kind = "empirical"\nvalues = 7'), "list"),
        (GOOD.replace(FIXED, 'kind = "empirical"\nvalues = [1, "a"]'), "a value"),
        ("[trace]\n", "needs its path"),
        ('[trace]\npath = "none.csv"\n', "no such file"),
        ('[trace]\npath = "t.csv"\nsort = 1\n', "sort must be true or false"),
        ('duration_s = 5\n[trace]\npath = "t.csv"\n', "unknown key 'duration_s'"),
        ("title = 7\n" + GOOD, "title"),
        ("broken", "no TOML"),
        ("a = " + "[" * 100_000, "no TOML"),
        ("requests = " + "9" * 5000, "no TOML|requests"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_file(tmp_path: Path, text: str, what: str) -> None:
    """Unknown keys and kinds, wrong types, senseless numbers and broken TOML are each one clear line."""
    with pytest.raises(InputError, match=what) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path))
    assert len(str(caught.value)) < 500


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are not UTF-8, and a missing file, are InputErrors."""
    path = tmp_path / "w.toml"
    with pytest.raises(InputError, match="cannot be read"):
        read_workload(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        read_workload(path)
