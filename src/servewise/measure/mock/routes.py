"""Which request gets what: a generation, a page, or a refusal."""

from __future__ import annotations

import random
from typing import Literal

import orjson

from servewise.measure.mock.answer import script_of
from servewise.measure.mock.asked import Asked, Unreadable, asked_of
from servewise.measure.mock.connection import Message
from servewise.measure.mock.fault import Fault, fault_named
from servewise.measure.mock.heads import head_of
from servewise.measure.mock.meters import Meters
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.prefix_cache import PrefixCache
from servewise.measure.mock.refusal import refusal, refusing
from servewise.measure.mock.script import Script
from servewise.measure.mock.shape import SHAPES, reshaped

_GENERATE: dict[str, Literal["chat", "completions"]] = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completions",
}


class Routes:
    """Answers by the plan. It keeps what the plan makes depend on earlier requests: draws, the prefix cache, the bodies
    that were turned away once."""

    def __init__(self, plan: MockPlan, meters: Meters) -> None:
        self._plan, self._meters = plan, meters
        self._draws, self._coins = random.Random(plan.seed), random.Random(plan.seed + 1)
        self._turned_away: set[int] = set()
        self._faults = dict(plan.faults)
        self.cache = PrefixCache(plan.prefix_block) if plan.prefix_block else None

    def page(self, message: Message) -> Script | None:
        """What is no generation; None for one."""
        path = message.path.partition("?")[0]
        if path in _GENERATE:
            return None if message.method == "POST" else refusal(405, "generation is asked for by POST", self._plan)
        pages = {"/health": self._health, "/metrics": self._metrics, "/v1/models": self._models}
        if path not in pages:
            return refusal(404, f"there is no {path}", self._plan)
        return pages[path]()

    def generation(self, message: Message, serial: int, *, full: bool) -> tuple[Script, Asked | None, str]:
        """The script for request number ``serial``, what it asked, and the name of what is special about it.

        ``full``: no more can wait.
        """
        plan, api = self._plan, _GENERATE[message.path.partition("?")[0]]
        try:
            asked = asked_of(api, message.body, message.headers, plan)
        except Unreadable as error:
            return refusal(400, str(error), plan), None, "400"
        refused = self._refused(message, asked, full)
        if refused is not None:
            return refused, asked, refused.name
        name = asked.wish or self._struck(serial) or ""
        fault = fault_named(name)
        if fault is None and name and name not in SHAPES:
            return refusal(400, f"nothing is called {name}", plan), asked, "400"
        if fault is Fault.RATE_LIMITED_ONCE and self._came_before(message.body):
            fault = None
        instead = None if fault is None else refusing(fault, plan)
        if instead is not None:
            return instead, asked, name
        shape = reshaped(plan.shape, name) if name in SHAPES else plan.shape
        cached = self._cached(asked)
        first_s = self._first_s(serial) + plan.prefill_s_per_token * max(0, asked.prompt_tokens - cached)
        return script_of(asked, plan, shape, first_s=first_s, cached=cached, fault=fault), asked, name

    def _refused(self, message: Message, asked: Asked, full: bool) -> Script | None:
        """A refusal that the request or the load brought on itself."""
        plan = self._plan
        if plan.key is not None and message.headers.get(b"authorization") != b"Bearer " + plan.key.encode():
            return refusal(401, "the key is not known", plan)
        if asked.model.rpartition("!")[0] != plan.model and asked.model != plan.model:
            return refusal(404, f"The model `{asked.model}` does not exist.", plan)
        if plan.context_tokens is not None and asked.prompt_tokens + asked.most_tokens > plan.context_tokens:
            return refusal(400, f"This model's maximum context length is {plan.context_tokens} tokens", plan)
        return refusal(429, "too many wait", plan) if full else None

    def _struck(self, serial: int) -> str | None:
        """The fault that the plan has for this request."""
        plan = self._plan
        if serial in self._faults:
            return self._faults[serial].value
        if plan.fault is None or (plan.fault_share < 1 and self._coins.random() >= plan.fault_share):
            return None
        return plan.fault.value

    def _came_before(self, body: bytes) -> bool:
        mark = hash(body)
        before = mark in self._turned_away
        self._turned_away.add(mark)
        return before

    def _cached(self, asked: Asked) -> int:
        cached = min(self._plan.cached_tokens, asked.prompt_tokens)
        if self.cache is not None:
            cached = round(self.cache.cached(asked.words) * self._plan.tokens_per_word)
        self._meters.queried += asked.prompt_tokens
        self._meters.hit += cached
        return cached

    def _first_s(self, serial: int) -> float:
        drawn = self._draws.uniform(*self._plan.first_s)
        table = self._plan.first_table_s
        return table[serial % len(table)] if table else drawn

    def _health(self) -> Script:
        return Script(at_once=head_of(200, "OK", 0))

    def _metrics(self) -> Script:
        page = self._meters.page(self._plan.model)
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Script(at_once=head_of(200, "OK", len(page), kind=kind) + page)

    def _models(self) -> Script:
        length = self._plan.context_tokens
        model = {"id": self._plan.model, "object": "model", "owned_by": "servewise", "max_model_len": length}
        page = orjson.dumps({"object": "list", "data": [model]})
        return Script(at_once=head_of(200, "OK", len(page)) + page)
