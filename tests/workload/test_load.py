"""WORKLOAD as a user gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from servewise.errors import InputError, UnknownName
from servewise.workload.load import load_workload, presets
from servewise.workload.synthetic import ClosedLoop, Synthetic
from servewise.workload.traces.trace import Trace


@pytest.mark.parametrize("name", sorted(presets()))
def test_every_preset_yields_requests_in_order(name: str) -> None:
    """Each bundled workload loads, has a rate, and yields valid requests in order of arrival."""
    workload = load_workload(name, requests=500)
    assert not isinstance(workload, ClosedLoop)
    made = list(workload.requests(1))
    assert len(made) == 500
    assert all(r.prompt_tokens > 0 and r.output_tokens > 0 for r in made)
    assert [r.arrival_s for r in made] == sorted(r.arrival_s for r in made)
    assert workload.rate_per_s > 0
    assert name in workload.title


def test_the_named_presets_are_there() -> None:
    """The conversation, code and Mooncake traces and the chat and rag shapes ship with the package."""
    assert {"azure-conv", "azure-code", "mooncake-conv", "chat", "rag"} <= set(presets())


def test_rate_and_requests_replace_the_workloads_own() -> None:
    """A trace and a synthetic workload both take another rate and another number of requests."""
    for name, kind in (("azure-code", Trace), ("chat", Synthetic)):
        found = load_workload(name, rate_per_s=7.5, requests=20_000)
        assert isinstance(found, kind)
        assert found.rate_per_s == pytest.approx(7.5)
        assert sum(1 for _ in found.requests(0)) == 20_000


def test_an_unknown_name_offers_the_nearest() -> None:
    """A misspelt preset names what was meant; a path that is not there says so."""
    with pytest.raises(UnknownName, match="azure-conv"):
        load_workload("azure-con")
    with pytest.raises(InputError, match="no such file"):
        load_workload("some/where.csv")
    with pytest.raises(InputError):
        load_workload("a\0b")
    with pytest.raises(InputError):
        load_workload("x" * 100_000)


def test_settings_that_do_not_apply_are_refused(tmp_path: Path) -> None:
    """A rate for a closed loop, and sorting for a workload file, are refused instead of ignored."""
    path = tmp_path / "closed.toml"
    path.write_text(
        'requests = 9\n[arrivals]\nkind = "closed"\nconcurrency = 2\n'
        '[prompt_tokens]\nkind = "fixed"\ntokens = 1\n[output_tokens]\nkind = "fixed"\ntokens = 1\n'
    )
    assert load_workload(str(path), requests=5) == load_workload(str(path), requests=5)
    with pytest.raises(InputError, match="no arrival rate"):
        load_workload(str(path), rate_per_s=2.0)
    with pytest.raises(InputError, match="workload file"):
        load_workload(str(path), sort=True)
    with pytest.raises(InputError, match="rate"):
        load_workload("chat", rate_per_s=0)
