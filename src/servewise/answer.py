"""An answer: the one document that each command gives, for people, scripts and reports alike."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servewise.caveats import Caveat
from servewise.conditions import Conditions


@dataclass(frozen=True, slots=True)
class Answer:
    """A result with its conditions and caveats.

    ``result`` holds plain JSON values in SI units, with the keys that CONTRACT fixes for ``command``.
    """

    command: str
    conditions: Conditions
    result: Mapping[str, Any]
    caveats: tuple[Caveat, ...] = field(default=())

    @property
    def schema(self) -> str:
        """The document's schema name, ``servewise.<command>/1``."""
        return f"servewise.{self.command}/1"

    def to_json(self) -> dict[str, Any]:
        """The whole document; infinities and NaN become null, which JSON can hold."""
        return {
            "schema": self.schema,
            "conditions": self.conditions.to_json(),
            "result": finite(dict(self.result)),
            "caveats": [caveat.to_json() for caveat in self.caveats],
        }

    def dumps(self) -> str:
        """The document as JSON text."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False)


def finite(value: Any) -> Any:
    """``value`` with every float that JSON cannot hold replaced by None.

    >>> finite({"a": [1.0, float("inf")]})
    {'a': [1.0, None]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value
