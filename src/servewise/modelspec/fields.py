"""A config's fields, read with their type and bounds checked, so that nothing hostile reaches the arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servewise.errors import InputError

MOST = 2**31 - 1  # no field of a real config is larger; a product of four stays an exact Python int
MOST_LAYERS = 4096
PLACEHOLDER = 1  # stands for a missing field until ``check`` refuses


class Fields:
    """The fields of one config.

    A field that is wrong raises InputError at once; fields that are missing are gathered, so that ``check`` can name
    all of them in one line. ``null`` is a missing field, as in transformers.
    """

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values, self.where = values, where
        self._missing: list[str] = []

    def over(self, defaults: Mapping[str, Any]) -> Fields:
        """These fields, with ``defaults`` where one is missing."""
        stated = {name: value for name, value in self.values.items() if value is not None or name not in defaults}
        return Fields({**defaults, **stated}, self.where)

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(name) is not None

    def get(self, *names: str) -> Any:
        """The first of these fields that is there, else None; not checked."""
        return next((self.values[name] for name in names if self.has(name)), None)

    def count(self, *names: str, default: int | None = None, least: int = 1, most: int = MOST) -> int:
        """A whole number from ``least`` to ``most``; ``names`` are the field and its aliases."""
        value = self.get(*names)
        if value is None:
            return self._absent(names[0], least) if default is None else default
        name = next(each for each in names if self.has(each))
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(name, value, "a whole number")
        if not least <= value <= most:
            raise self.wrong(name, value, f"from {least} to {most}")
        return value

    def flag(self, *names: str, default: bool | None = None) -> bool:
        """A true or false."""
        value = self.get(*names)
        if value is None:
            return bool(self._absent(names[0], 0)) if default is None else default
        if not isinstance(value, bool):
            raise self.wrong(next(each for each in names if self.has(each)), value, "true or false")
        return value

    def text(self, *names: str, default: str = "") -> str:
        """A string."""
        value = self.get(*names)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.wrong(next(each for each in names if self.has(each)), value, "a text")
        return value

    def listed(self, name: str, length: int | None = None) -> list[Any] | None:
        """A list, of ``length`` items where that is given; None where the field is missing."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self.wrong(name, value, "a list")
        if length is not None and len(value) != length:
            raise self.wrong(name, f"a list of {len(value)}", f"a list of {length}, one item a layer")
        return value

    def choices(self, name: str, allowed: Sequence[str], length: int | None = None) -> list[str] | None:
        """A list of texts, each one of ``allowed``."""
        items = self.listed(name, length)
        for item in items or ():
            if item not in allowed:
                raise self.wrong(name, item, f"made of {', '.join(allowed)}")
        return items

    def indices(self, name: str) -> frozenset[int] | None:
        """A list of whole numbers as a set; None where the field is missing."""
        items = self.listed(name)
        for item in items or ():
            if isinstance(item, bool) or not isinstance(item, int):
                raise self.wrong(name, item, "a list of whole numbers")
        return None if items is None else frozenset(items)

    def part(self, name: str) -> Fields | None:
        """A nested config, None where it is missing."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.wrong(name, value, "an object")
        return Fields(value, f"{self.where}: {name}")

    def missing(self, name: str) -> None:
        """Note that ``name`` is needed and not there."""
        if name not in self._missing:
            self._missing.append(name)

    def check(self) -> None:
        """Refuse the config if a field that was needed is missing, naming every one."""
        if self._missing:
            raise InputError(
                f"missing {'fields' if len(self._missing) > 1 else 'field'} {', '.join(self._missing)}",
                where=self.where,
                hint="take the config.json from the checkpoint's own repository",
            )

    def wrong(self, name: str, value: object, wanted: str) -> InputError:
        """The error for a field with a value that it cannot have."""
        return InputError(f"{name} must be {wanted}, not {_shown(value)}", where=self.where)

    def _absent(self, name: str, least: int) -> int:
        self.missing(name)
        return max(PLACEHOLDER, least)


def _shown(value: object) -> str:
    if isinstance(value, (list, Mapping)):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and abs(value) >= 10**40:
        return "a number of over 40 digits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
