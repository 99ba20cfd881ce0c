"""A model's matrix products and attention by shape, as a decoder with fused projections runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

from torch.nn.functional import linear, scaled_dot_product_attention

from servewise.errors import InputError
from servewise.modelspec.spec import Attention, AttentionKind, ModelSpec
from servewise.probe.ops.operation import Operation, dtype_named, filled

BY_HEAD = (AttentionKind.FULL, AttentionKind.SLIDING, AttentionKind.CHUNKED)
MOST_COPIES_BYTES = 2**30  # beyond any cache; more copies of a weight would only take memory


class Product(NamedTuple):
    """A linear layer of the model, that ``layers`` layers have with weights of their own."""

    name: str
    inputs: int
    outputs: int
    layers: int


def products_of(model: ModelSpec) -> tuple[Product, ...]:
    """The products of a dense decoder: q, k and v as one, output, gate and up as one, down, and the head.

    Raises InputError for a model whose layers have no such form (MLA, recurrent states, experts).
    """
    hidden = model.hidden_size
    found: list[Product] = []
    for group in model.layers:
        attention, part = group.attention, group.feed_forward
        if attention.kind not in BY_HEAD or part.experts or not part.dense_parameters:
            raise InputError(
                f"{model.name} has {attention.kind.value} or expert layers, whose products are not timed",
                where="model", hint="leave MODEL out, or give a dense decoder",
            )  # fmt: skip
        inner = part.dense_parameters // (3 * hidden)
        found += [
            Product("qkv", hidden, attention.score_width + attention.kv_values_per_token, group.count),
            Product("output", attention.value_width, hidden, group.count),
            Product("gate+up", hidden, 2 * inner, group.count),
            Product("down", inner, hidden, group.count),
        ]
    return (*dict.fromkeys(found), Product("head", hidden, model.vocab_size, 1))


def product_operations(
    model: ModelSpec, tokens: Sequence[int], dtypes: Sequence[str], device: str
) -> Iterator[Operation]:
    """Each product for each number of tokens.

    The call goes round as many copies of the weights as the model has layers, so that they lie in memory as they do
    while the model runs and not all in the nearest cache.
    """  # fmt: skip
    return (_product(each, count, dtype, device) for dtype in dtypes for each in products_of(model) for count in tokens)


def _product(product: Product, tokens: int, dtype: str, device: str) -> Operation:
    kind = dtype_named(dtype)
    name, inputs, outputs, layers = product
    size = inputs * outputs * kind.itemsize
    copies = max(1, min(layers, MOST_COPIES_BYTES // size))

    def prepare() -> Callable[[], object]:
        weights = cycle([filled((outputs, inputs), kind, device) for _ in range(copies)])
        rows = filled((tokens, inputs), kind, device)
        return lambda: linear(rows, next(weights))

    return Operation(
        kind="product", name=name, dtype=dtype, flops=2.0 * tokens * inputs * outputs,
        moved_bytes=size + tokens * (inputs + outputs) * kind.itemsize, prepare=prepare,
        shape={"tokens": tokens, "inputs": inputs, "outputs": outputs, "layers": layers},
    )  # fmt: skip


def attention_operations(
    model: ModelSpec, batches: Sequence[int], contexts: Sequence[int], dtypes: Sequence[str], device: str
) -> Iterator[Operation]:
    """One layer's attention through PyTorch's fused kernel: decode by batch and context, prefill by prompt."""
    attention = next(each for _, each in model.attentions() if each.kind in BY_HEAD)
    for dtype in dtypes:
        for context in contexts:
            yield from (_attention(attention, "decode", batch, 1, context, dtype, device) for batch in batches)
            yield _attention(attention, "prefill", 1, context, context, dtype, device)


def _attention(
    attention: Attention, phase: str, batch: int, new_tokens: int, context: int, dtype: str, device: str
) -> Operation:
    kind = dtype_named(dtype)
    heads, kv_heads, width = attention.heads, attention.kv_heads, attention.head_dim

    def prepare() -> Callable[[], object]:
        query = filled((batch, heads, new_tokens, width), kind, device)
        key, value = (filled((batch, kv_heads, context, width), kind, device) for _ in range(2))
        causal, grouped = new_tokens > 1, heads != kv_heads
        return lambda: scaled_dot_product_attention(query, key, value, is_causal=causal, enable_gqa=grouped)

    pairs = batch * (context if new_tokens == 1 else context * (context + 1) // 2)
    moved = batch * width * 2 * (kv_heads * context + heads * new_tokens) * kind.itemsize
    return Operation(
        kind="attention", name=phase, dtype=dtype, flops=4.0 * heads * width * pairs, moved_bytes=moved,
        prepare=prepare, shape={"batch": batch, "new_tokens": new_tokens, "context_tokens": context, "heads": heads},
    )  # fmt: skip
