"""Building, keeping and doing without the kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.engine.compiled.targets import built

from servewise.engine.compiled import library
from servewise.engine.compiled.library import NATIVE, Unavailable, cpu_features, instructions, kernels


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache folder, nothing remembered; other tests get theirs back."""
    built(NATIVE)
    kernels.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield
    kernels.cache_clear()


@pytest.mark.slow
def test_a_build_is_kept_and_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second process needs no compiler's work: the file stays as it is, and nothing else lies beside it."""
    kernels()
    (made,) = (tmp_path / "cache" / "servewise").iterdir()
    before = made.stat().st_mtime_ns
    kernels.cache_clear()
    monkeypatch.setattr(library, "_build", lambda *_: pytest.fail("built again"))
    kernels()

    assert made.stat().st_mtime_ns == before


@pytest.mark.slow
def test_the_instructions_are_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """AMX and AVX-512 are named only where Linux lists them for this CPU."""
    features = cpu_features().split()
    name = instructions()

    assert name in {"AMX-BF16", "AVX512-BF16", "AVX512", "AVX2"}
    assert name != "AMX-BF16" or "amx_bf16" in features
    assert name != "AVX512-BF16" or "avx512_bf16" in features
    assert name != "AVX512" or "avx512f" in features


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """No compiler in the path is said in one line."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(Unavailable, match=r"no C\+\+ compiler found \(g\+\+, clang\+\+, c\+\+\)"):
        kernels()


def test_a_failing_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that fails is quoted, and leaves nothing that a later process would load."""
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\necho 'step.cpp:1: fatal error: omp.h: no such file' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(Unavailable, match=r"could not build the kernels: step.cpp:1: fatal error: omp.h"):
        kernels()

    assert list((tmp_path / "cache" / "servewise").iterdir()) == []


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the folder should be is said in one line."""
    (tmp_path / "cache").write_text("")
    with pytest.raises(Unavailable, match="could not be kept or loaded"):
        kernels()


def test_a_damaged_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept file that is no library is said in one line."""

    def damaged(_compiler: str, _flags: tuple[str, ...], target: Path) -> None:
        target.parent.mkdir(parents=True)
        target.write_bytes(os.urandom(100))

    monkeypatch.setattr(library, "_build", damaged)
    with pytest.raises(Unavailable, match="could not be kept or loaded"):
        kernels()


@pytest.mark.parametrize(("machine", "system"), [("aarch64", "Linux"), ("x86_64", "Darwin")])
def test_another_machine(monkeypatch: pytest.MonkeyPatch, machine: str, system: str) -> None:
    """Only Linux on x86-64 is tried."""
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("platform.system", lambda: system)
    with pytest.raises(Unavailable, match=f"this is {system} on {machine}"):
        kernels()


def test_an_old_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without AVX2 there are no kernels."""
    monkeypatch.setattr(library, "cpu_features", lambda: "sse sse2 avx")
    with pytest.raises(Unavailable, match="lacks AVX2"):
        kernels()
