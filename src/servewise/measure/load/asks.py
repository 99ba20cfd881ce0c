"""From a request of a workload to the ask that is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servewise.measure.ask import Ask
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompt import Prompt, TokenIds
from servewise.measure.load.prompts import Prompts
from servewise.workload.request import Request


@dataclass(frozen=True, slots=True)
class MadeAsks:
    """Asks with prompts made to length; ``block_tokens`` are those of the workload's hashes."""

    prompts: Prompts
    form: Form
    block_tokens: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.prompts.material, TokenIds):
            self.form.check(Prompt((0,)))

    def __call__(self, request: Request) -> Ask:
        """The ask of ``request``."""
        prompt = self.prompts.of(request, self.block_tokens)
        return asked(request.serial, prompt, self.form, request.output_tokens)


@dataclass(frozen=True, slots=True)
class GivenAsks:
    """Asks that are there already, by their place."""

    asks: Sequence[Ask]

    def __call__(self, request: Request) -> Ask:
        """The ask at the place of ``request``."""
        return self.asks[request.serial]


def asked(serial: int, prompt: Prompt, form: Form, output_tokens: int) -> Ask:
    """The ask of ``prompt``."""
    return Ask(
        serial=serial,
        body=form.body(prompt, output_tokens),
        output_tokens=output_tokens,
        prompt_tokens=prompt.tokens,
        group=prompt.group,
        streamed=form.streamed,
    )
