"""Prompts of several runs against one server: no text comes twice, but all share the same prefix."""

from __future__ import annotations

from dataclasses import dataclass, replace

from servewise.measure.load.prompt import Prompt
from servewise.measure.load.prompts import Prompts
from servewise.workload.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftedPrompts(Prompts):
    """Prompts whose own texts are those of the requests from number ``first`` on; shared blocks stay the same."""

    first: int = 0

    def of(self, request: Request, block_tokens: int | None = None) -> Prompt:
        """See ``Prompts.of``."""
        return Prompts.of(self, request._replace(serial=request.serial + self.first), block_tokens)

    def later(self, by: int) -> ShiftedPrompts:
        """The same from ``by`` requests further on."""
        return replace(self, first=self.first + by)
