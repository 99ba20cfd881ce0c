"""A command line: as the program runs it, with the files where they lie, and as a person would type it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """``servewise COMMAND ARGUMENTS OPTIONS``; an option without a value (None) is a flag."""

    command: str
    arguments: tuple[str, ...]
    options: tuple[tuple[str, str | None], ...]

    @property
    def values(self) -> tuple[str, ...]:
        """All that is said in it."""
        return (*self.arguments, *(value for _, value in self.options if value))

    def run(self, place: Callable[[str], str]) -> tuple[str, ...]:
        """What runs: no value can be taken for an option; ``place`` puts a file's path for its reference."""
        options = (name if value is None else f"{name}={place(value)}" for name, value in self.options)
        arguments = ("--", *map(place, self.arguments)) if self.arguments else ()
        return (self.command, *options, *arguments)

    def typed(self, name: Callable[[str], str]) -> str:
        """What a person types, in a folder with the files; ``name`` puts a file's name for its reference."""
        parts = ["servewise", self.command, *(shlex.quote(name(each)) for each in self.arguments)]
        for option, value in self.options:
            parts += [option] if value is None else _pair(option, name(value))
        return " ".join(parts)


def _pair(option: str, value: str) -> list[str]:
    return [f"{option}={shlex.quote(value)}"] if value.startswith("-") else [option, shlex.quote(value)]
