"""What a family's reader gives: the layers, and what stands before and after them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from servewise.modelspec.fields import MOST_LAYERS, Fields
from servewise.modelspec.spec import Attention, FeedForward, Layers

Layer = tuple[Attention, FeedForward, int]  # token mixer, feed-forward part, parameters of the norms


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network as its config gives it.

    ``embedding_extra_parameters`` are those of learned positions and of norms on the embedding,
    ``head_extra_parameters`` a bias on the logits. ``uncounted`` names parts of the checkpoint that are left out.
    """

    layers: tuple[Layers, ...]
    tied: bool
    final_norm_parameters: int
    embedding_extra_parameters: int = 0
    head_extra_parameters: int = 0
    uncounted: tuple[str, ...] = ()
    drafting_parameters: int = 0


def grouped(layers: Iterable[Layer]) -> tuple[Layers, ...]:
    """Equal layers together, in the order in which each kind first comes."""
    counts = Counter(layers)
    return tuple(
        Layers(count=count, attention=attention, feed_forward=feed_forward, norm_parameters=norms)
        for (attention, feed_forward, norms), count in counts.items()
    )


def layer_count(fields: Fields, name: str = "num_hidden_layers") -> int:
    """The number of layers, at most 4,096."""
    return fields.count(name, most=MOST_LAYERS)


def linear(inputs: int, outputs: int, bias: bool = False) -> int:
    """Parameters of a matrix, with its bias if it has one.

    >>> linear(3, 4), linear(3, 4, True)
    (12, 16)
    """
    return inputs * outputs + outputs * bias


def drafting_count(fields: Fields) -> int:
    """The number of multi-token prediction layers that the checkpoint holds."""
    return fields.count("num_nextn_predict_layers", "mtp_num_hidden_layers", default=0, least=0, most=MOST_LAYERS)


def drafting_parameters(fields: Fields, layer: Layer, *, table_copies: int) -> int:
    """Parameters of the multi-token prediction layers (DeepSeek-V3, section 2.2).

    Each is a decoder layer like ``layer``, a 2 h x h projection of the two inputs, a norm for each of them and one
    before the head. DeepSeek-V3 and GLM-4.5 store their own copies of embedding and head (``table_copies`` 2).
    """
    attention, part, norms = layer
    hidden = fields.count("hidden_size")
    tables = table_copies * fields.count("vocab_size") * hidden
    own = attention.parameters + part.parameters + norms + linear(2 * hidden, hidden) + 3 * hidden
    return drafting_count(fields) * (own + tables)


def drafting_layers(fields: Fields) -> tuple[str, ...]:
    """The multi-token prediction layers of the checkpoint in words; plain decoding does not load them."""
    count = drafting_count(fields)
    return (f"{count} multi-token prediction layer{'s' * (count > 1)}",) if count else ()
