"""Two answers to one prompt, token by token, up to where they part.

After the first difference the two servers continue different texts, so nothing beyond it is compared: what it says of
a single step is known from the steps before, and from that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servewise.measure.exchange import Exchange
from servewise.measure.quality.divergence import Divergence, divergence
from servewise.measure.quality.said import Said, said_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """``equal`` units agree from the beginning; ``first_difference`` is the place of the first that does not, if any.

    ``length``: of the longer answer. ``unit``: tokens where both servers told theirs, else characters. ``divergences``
    are those of the compared steps: the equal ones and the one at which the answers part.
    """

    unit: str
    equal: int
    length: int
    first_difference: int | None
    divergences: tuple[Divergence, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the answers are the same."""
        return self.first_difference is None

    @property
    def compared(self) -> int:
        """The steps that both took with the same text before them."""
        return self.equal + (not self.exact)


def agreement(a: Exchange, b: Exchange) -> Agreement | None:
    """Of two completed answers; None where neither tokens nor texts are there to compare."""
    told_a, told_b = said_by(a), said_by(b)
    if told_a and told_b:
        equal, parted = _common([each.token for each in told_a], [each.token for each in told_b])
        return Agreement(
            unit="tokens",
            equal=equal,
            length=max(len(told_a), len(told_b)),
            first_difference=equal if parted else None,
            divergences=_divergences(told_a, told_b, equal + 1),
        )
    if a.text is None or b.text is None:
        return None
    equal, parted = _common(a.text, b.text)
    return Agreement(
        unit="characters",
        equal=equal,
        length=max(len(a.text), len(b.text)),
        first_difference=equal if parted else None,
    )


def _common(a: Sequence[object], b: Sequence[object]) -> tuple[int, bool]:
    """How many agree from the beginning, and whether the two part at all (one may end before the other)."""
    equal = next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return equal, equal < max(len(a), len(b))


def _divergences(a: Sequence[Said], b: Sequence[Said], steps: int) -> tuple[Divergence, ...]:
    pairs = zip(a[:steps], b[:steps], strict=False)
    found = (divergence(x.shares, y.shares) for x, y in pairs if x.shares and y.shares)
    return tuple(each for each in found if each is not None)
