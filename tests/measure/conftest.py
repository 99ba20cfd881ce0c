"""A light install has no load client: what needs ``servewise[measure]`` is passed over there."""

from __future__ import annotations

from importlib.util import find_spec

NEED_THE_CLIENT = ("mock", "self_test")

collect_ignore = [] if find_spec("httptools") and find_spec("orjson") else list(NEED_THE_CLIENT)
