"""How many tokens a server makes of our words, learned from the usage that it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from servewise.caveats import Caveat
from servewise.errors import RunFailed
from servewise.measure.ask import Ask
from servewise.measure.exchange import Exchange
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompt import Material, Prompt
from servewise.measure.outcome import Outcome
from servewise.workload.streams import stream

PROBES = (16, 128, 512)  # units; the longest is left out where a short context refuses it
LEAST_PER_UNIT = 0.1  # a word or an id is a token or more; what counts fewer counts something else, or cuts prompts off


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensPerUnit:
    """prompt tokens = ``template`` + ``per_unit`` x units. ``probes``: (units, tokens) by which it is known."""

    template: float = 0.0
    per_unit: float = 1.0
    probes: tuple[tuple[int, int], ...] = ()

    def units(self, tokens: int) -> int:
        """The units of a prompt of ``tokens`` in all; at least 1.

        >>> TokensPerUnit(template=31, per_unit=1.0).units(512)
        481
        """
        return max(round((tokens - self.template) / self.per_unit), 1)

    @property
    def worst_tokens(self) -> float:
        """How far a probe lies from the line [tokens]."""
        return max((abs(self.template + self.per_unit * units - tokens) for units, tokens in self.probes), default=0.0)

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """That lengths were not checked, or can only be near."""
        if not self.probes:
            message = "the server reports no usage: prompts are as many words as tokens were asked for"
            return (Caveat("prompt-lengths-unchecked", message, "give the model's tokenizer, or token ids"),)
        if self.worst_tokens > 1:
            message = f"a word takes {self.per_unit:.3g} tokens here: prompts are within a few tokens of what was asked"
            return (Caveat("prompt-lengths-near", message, "give the model's tokenizer, or token ids"),)
        return ()


def learnt(material: Material, seed: int, salt: int, send: Callable[[Ask], Exchange], form: Form) -> TokensPerUnit:
    """The line through the server's counts of ``PROBES``; RunFailed where it completes none of them."""
    ended = [send(_probe(material, seed, salt, form, serial, units)) for serial, units in enumerate(PROBES)]
    if all(each.outcome is not Outcome.COMPLETED for each in ended):
        raise RunFailed(f"the server answered no probe ({ended[0].outcome.value}: {ended[0].reason})")
    probes = tuple(
        (units, each.prompt_tokens)
        for units, each in zip(PROBES, ended, strict=True)
        if each.outcome is Outcome.COMPLETED and each.prompt_tokens is not None and each.counted_by == "usage"
    )
    return line(probes)


def line(probes: tuple[tuple[int, int], ...]) -> TokensPerUnit:
    """Least squares through (units, tokens); one token a unit where a single point is known.

    >>> line(((16, 47), (128, 159), (512, 543)))
    TokensPerUnit(template=31.0, per_unit=1.0, probes=((16, 47), (128, 159), (512, 543)))
    """
    if not probes:
        return TokensPerUnit()
    units, tokens = np.array(probes, float).T
    spread = units - units.mean()
    per_unit = float(spread @ tokens / (spread @ spread)) if len(probes) > 1 else 1.0
    if per_unit < LEAST_PER_UNIT:
        told = ", ".join(f"{tokens:,} tokens for {units} words" for units, tokens in probes)
        raise RunFailed(f"the server counts {told}: its usage is no count")
    template = float(tokens.mean() - per_unit * units.mean())
    return TokensPerUnit(template=round(template, 9) + 0.0, per_unit=round(per_unit, 9), probes=probes)


def _probe(material: Material, seed: int, salt: int, form: Form, serial: int, units: int) -> Ask:
    drawn = stream(seed, "probe text", salt, serial).integers(0, material.size, units)
    body = form.body(Prompt(material.joined(drawn)), 1)
    return Ask(serial=serial, body=body, output_tokens=1, streamed=form.streamed)
