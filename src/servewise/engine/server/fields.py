"""A request's JSON body read field by field: each has its type and range, and what nobody reads is refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from servewise.engine.server.fault import Fault
from servewise.errors import nearest_names

# Fields of the OpenAI API and of vLLM that are taken where they ask for nothing: their default, or a label.
LABELS = frozenset({"user", "safety_identifier", "prompt_cache_key", "request_id"})
NEUTRAL: Mapping[str, Sequence[Any]] = {
    "logit_bias": ({},),
    "response_format": ({"type": "text"},),
    "tools": ([],),
    "tool_choice": ("none",),
    "parallel_tool_calls": (True, False),
    "modalities": (["text"],),
    "metadata": ({},),
    "store": (False,),
    "service_tier": ("auto", "default"),
    "suffix": ("",),
    "echo": (False,),
    "best_of": (1,),
    "add_generation_prompt": (True,),
    "skip_special_tokens": (True,),
    "min_tokens": (0,),
    "stop_token_ids": ([],),
    "use_beam_search": (False,),
}


def parsed(body: bytes) -> Mapping[str, Any]:
    """The JSON object in ``body``."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, json.JSONDecodeError) else "it cannot be read"
        raise Fault(f"the body is no JSON: {reason}", code="invalid_json") from None
    if not isinstance(found, dict):
        raise Fault("the body must be a JSON object", code="invalid_json")
    return found


def whole_number(value: Any) -> int | None:
    """``value``, if it is a whole number as JSON Schema has it: 2.0 is one, true is none."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class Fields:
    """``body`` under ``where`` (the name of the object that holds it); null is as good as absent."""

    def __init__(self, body: Mapping[str, Any], where: str = "") -> None:
        self._body, self._where = body, where
        self._read: set[str] = set()

    def take(self, name: str) -> Any:
        """The value of a field as it is; None: it is absent."""
        self._read.add(name)
        return self._body.get(name)

    def flag(self, name: str, default: bool = False) -> bool:
        """A true or false."""
        value = self.take(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(name, "must be true or false", value)
        return value

    def text(self, name: str) -> str | None:
        """A string."""
        value = self.take(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(name, "must be a string", value)
        return value

    def whole(self, name: str, least: int, most: int) -> int | None:
        """A whole number from ``least`` to ``most``."""
        value = self.take(name)
        if value is None:
            return None
        number = whole_number(value)
        if number is None:
            raise self.wrong(name, "must be a whole number", value)
        if not least <= number <= most:
            raise self.wrong(name, f"must be from {least} to {most}", value)
        return number

    def number(self, name: str, default: float) -> float:
        """A number; its range is the sampler's to check."""
        value = self.take(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(name, "must be a number", value)
        try:
            return float(value)
        except OverflowError:
            raise self.wrong(name, "must be a number of ordinary size", value) from None

    def refuse_rest(self) -> None:
        """Refuse the first field that nobody has read and that asks for something."""
        for name, value in self._body.items():
            if name in self._read or value is None or (name in LABELS and isinstance(value, str)):
                continue
            if not self._where and name in NEUTRAL:
                if value in NEUTRAL[name] and type(value) in {type(each) for each in NEUTRAL[name]}:
                    continue
                raise Fault(f"{name!r} is not supported here", param=name, code="unsupported_parameter")
            near = nearest_names(name, self._read)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise Fault(
                f"unknown parameter {self._path(name)!r}{hint}", param=self._path(name), code="unknown_parameter"
            )

    def wrong(self, name: str, wanted: str, value: Any) -> Fault:
        """A field that holds what it must not."""
        try:
            shown = json.dumps(value)
        except RecursionError:
            shown = "lists in lists in lists"
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return Fault(f"{self._path(name)} {wanted}, not {shown}", param=self._path(name), code="invalid_value")

    def _path(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name
