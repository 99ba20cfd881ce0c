"""The compiled kernels as a loaded library: built once with the machine's own compiler, then kept in the user's cache.

A build is kept under the hash of all that it depends on: sources, compiler, flags, CPU. Nothing here fails a run: what
stands in the way is said in ``Unavailable``, and the engine computes with PyTorch.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from ctypes import POINTER, c_bool, c_char_p, c_int, c_int64, c_void_p
from functools import lru_cache
from pathlib import Path

from servewise.engine.compiled.structures import CacheStructure, ModelStructure, ProductStructure, StepStructure

SOURCES = Path(__file__).parent / "kernels"
COMPILERS = ("g++", "clang++", "c++")
FLAGS = (
    "-O3",
    "-std=c++17",
    "-ffp-contract=fast",
    "-mprefer-vector-width=512",
    "-Wno-psabi",
    "-shared",
    "-fPIC",
    "-fopenmp",
)
NATIVE = "native"
BUILD_SECONDS = 120


class Unavailable(Exception):
    """Why there are no compiled kernels here, in one line."""


@lru_cache
def kernels(target: str = NATIVE) -> ctypes.CDLL:
    """The library for ``target`` (as the compilers' ``-march`` names it), built first where it is not yet in the cache.

    Raises Unavailable: another kind of CPU, no compiler, a build that fails or a cache that cannot be written.
    """
    if platform.machine() not in ("x86_64", "AMD64") or platform.system() != "Linux":
        raise Unavailable(f"kernels are for Linux on x86-64, this is {platform.system()} on {platform.machine()}")
    features = cpu_features()
    if not {"avx2", "fma"} <= set(features.split()):
        raise Unavailable("this CPU lacks AVX2 and FMA")
    compiler = _compiler()
    flags = (*FLAGS, f"-march={target}")
    try:
        built = cache_folder() / f"kernels-{_key(compiler, flags, features)}.so"
        if not built.exists():
            _build(compiler, flags, built)
        return _typed(ctypes.CDLL(str(built)))
    except (OSError, RuntimeError) as error:  # a RuntimeError: there is no home
        raise Unavailable(f"kernels could not be kept or loaded ({error})") from error


def instructions(target: str = NATIVE) -> str:
    """The widest instructions that the library multiplies with: AMX-BF16, AVX512-BF16, AVX512 or AVX2."""
    name: bytes = kernels(target).servewise_instructions()
    return name.decode()


def cache_folder() -> Path:
    """Where builds are kept: ``servewise`` in ``XDG_CACHE_HOME``, or in ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "servewise"


def cpu_features() -> str:
    """What the CPU can do, as Linux says it; empty where it does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("flags")), "")


def _compiler() -> str:
    names = [*filter(None, [os.environ.get("CXX")]), *COMPILERS]
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        raise Unavailable(f"no C++ compiler found ({', '.join(names)})")
    return found


def _key(compiler: str, flags: tuple[str, ...], features: str) -> str:
    """Everything that a build depends on, as 16 hexadecimal digits."""
    status = Path(compiler).resolve().stat()
    digest = hashlib.sha256(repr((compiler, status.st_size, status.st_mtime_ns, flags, features)).encode())
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()[:16]


def _build(compiler: str, flags: tuple[str, ...], target: Path) -> None:
    """Compile into ``target``, which is there whole or not at all."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        command = [compiler, *flags, str(SOURCES / "step.cpp"), "-o", str(made)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=BUILD_SECONDS)
        except subprocess.CalledProcessError as error:
            lines = error.stderr.strip().splitlines()
            why = next((line for line in lines if "error" in line), f"exit code {error.returncode}")
            raise Unavailable(f"{compiler} could not build the kernels: {why}") from error
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"{compiler} took over {BUILD_SECONDS} s to build the kernels") from error
        made.replace(target)


def _typed(library: ctypes.CDLL) -> ctypes.CDLL:
    library.servewise_room.argtypes = (POINTER(ModelStructure), POINTER(StepStructure), c_int)
    library.servewise_room.restype = c_int64
    library.servewise_step.argtypes = (
        POINTER(ModelStructure),
        POINTER(CacheStructure),
        POINTER(StepStructure),
        c_void_p,
        c_void_p,
        c_int,
    )
    library.servewise_step.restype = c_bool
    library.servewise_product.argtypes = (POINTER(ProductStructure), c_void_p, c_int64, c_void_p, c_int64, c_int)
    library.servewise_product.restype = None
    library.servewise_instructions.argtypes = ()
    library.servewise_instructions.restype = c_char_p
    return library
