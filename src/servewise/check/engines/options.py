"""The options that each engine's parser takes, as data written from the engines themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

Takes = Literal["none", "one", "optional", "many"]
ENGINES = ("vllm", "sglang", "trtllm", "llamacpp")
ABBREVIATES = ("vllm", "sglang")  # argparse takes any unambiguous beginning of a long option


@dataclass(frozen=True, slots=True)
class Spec:
    """An option: its names, how many values it takes, which values where they are listed."""

    names: tuple[str, ...]
    takes: Takes
    choices: tuple[str, ...] = ()
    deprecated: bool = False

    @property
    def name(self) -> str:
        """The long name by which it is known here: the first that begins with two dashes."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])

    @property
    def positive(self) -> tuple[str, ...]:
        """The names that switch it on."""
        return tuple(name for name in self.names if not is_negative(name))


@dataclass(frozen=True, slots=True)
class Options:
    """One engine's options in one version, with the address they were read from."""

    engine: str
    version: str
    address: str
    made_by: str
    by_name: Mapping[str, Spec]

    def find(self, given: str) -> Spec | None:
        """The option that the parser takes ``given`` for: dashes and underscores alike, abbreviations where it does."""
        name = spelt(given)
        exact = self.by_name.get(name)
        if exact is not None or self.engine not in ABBREVIATES or not name.startswith("--") or len(name) < 4:
            return exact
        return _abbreviated(self.engine, name)

    def beginning(self, given: str) -> tuple[str, ...]:
        """The options that begin as ``given`` does."""
        return tuple(key for key in self.by_name if key.startswith(spelt(given)))


@lru_cache(maxsize=4096)
def _abbreviated(engine: str, name: str) -> Spec | None:
    fitting = {spec.names: spec for key, spec in options_of(engine).by_name.items() if key.startswith(name)}
    return next(iter(fitting.values())) if len(fitting) == 1 else None


def spelt(name: str) -> str:
    """A long option with dashes for underscores; a short one as it is.

    >>> spelt("--max_model_len"), spelt("-tp")
    ('--max-model-len', '-tp')
    """
    return name.replace("_", "-") if name.startswith("--") else name


def is_negative(name: str) -> bool:
    """Whether a switch's name switches off."""
    return name.startswith(("--no-", "-no", "--no_"))


@cache
def options_of(engine: str) -> Options:
    """The options of ``engine``, as they ship."""
    text = files("servewise.check.engines").joinpath("options", f"{engine}.json").read_text(encoding="utf-8")
    data = json.loads(text)
    specs = [
        Spec(tuple(row["names"]), row["takes"], tuple(row.get("choices", ())), bool(row.get("deprecated", False)))
        for row in data["options"]
    ]
    by_name = {spelt(name): spec for spec in reversed(specs) for name in spec.names}
    return Options(data["engine"], data["version"], data["address"], data["made_by"], by_name)
