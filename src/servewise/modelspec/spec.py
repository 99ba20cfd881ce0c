"""A model as arithmetic needs it: layers by kind, each with its parameters and what it keeps per token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from servewise.precision import Precision


class AttentionKind(StrEnum):
    """What a layer keeps of earlier tokens."""

    FULL = "full"  # keys and values of every token
    SLIDING = "sliding"  # keys and values of the last ``window_tokens`` tokens
    CHUNKED = "chunked"  # keys and values of the current chunk of ``window_tokens`` tokens (Llama 4)
    LATENT = "latent"  # one compressed vector a token, shared by all heads (MLA)
    STATE = "state"  # a state of fixed size a sequence (linear attention, Mamba)
    NONE = "none"  # a block without a token mixer


class WeightPart(StrEnum):
    """A part of the weights that has one storage format of its own."""

    EMBEDDING = "embedding"
    ATTENTION = "attention"
    FEED_FORWARD = "feed_forward"  # dense and shared feed-forward matrices, the router with them
    EXPERTS = "experts"  # routed experts
    NORMS = "norms"
    HEAD = "head"
    TOWER = "tower"  # a vision tower with its projector


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """The token mixer of one layer.

    ``kv_values_per_token`` are the stored values (not bytes) a token adds, for all heads: 2 x kv_heads x head_dim for
    full attention, kv_lora_rank + qk_rope_head_dim for MLA. ``extra_kv_bytes_per_token`` is what is kept beside
    them in a format of its own (the indexer keys of sparse MLA). ``score_width`` and ``value_width`` are the summed
    widths, over the query heads, of q.k and of p.v, so that one query-key pair costs 2 x (score_width + value_width)
    FLOPs. ``state_values`` are the values that a sequence keeps whatever its length, ``convolution_values`` the last
    inputs of its short convolution.

    MLA decodes in its absorbed form, where each head works on the latent itself: ``absorbed_score_width`` and
    ``absorbed_value_width`` are its widths (0: there is no other form). ``attended_tokens`` is the most tokens a query
    reads (sparse attention's top-k), ``index_width`` the summed width of the indexer's query heads, which still
    scores every token. ``fp8_kv_bytes_per_token`` is what an fp8 cache stores where engines use a layout of their own.
    ``replicated_parameters`` are held whole by every tensor-parallel rank.
    """

    kind: AttentionKind
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    window_tokens: int | None = None
    kv_values_per_token: int = 0
    extra_kv_bytes_per_token: int = 0
    score_width: int = 0
    value_width: int = 0
    state_values: int = 0
    parameters: int = 0
    convolution_values: int = 0
    absorbed_score_width: int = 0
    absorbed_value_width: int = 0
    attended_tokens: int | None = None
    index_width: int = 0
    fp8_kv_bytes_per_token: int = 0
    replicated_parameters: int = 0

    @property
    def splits_by_tensor_parallel(self) -> bool:
        """Whether the KV of a token is shared out over tensor-parallel ranks (MLA's latent is not)."""
        return self.kind is not AttentionKind.LATENT


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """The feed-forward part of one layer.

    A dense layer has ``dense_parameters`` only. A mixture adds ``experts`` routed experts of
    ``expert_parameters`` each, of which a token uses ``experts_per_token``; shared experts and the router count
    in ``dense_parameters``, since every token uses them.
    """

    dense_parameters: int = 0
    experts: int = 0
    experts_per_token: int = 0
    expert_parameters: int = 0

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self.dense_parameters + self.experts * self.expert_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that one token uses."""
        return self.dense_parameters + self.experts_per_token * self.expert_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """``count`` equal layers. ``norm_parameters`` are the norms' of one layer."""

    count: int
    attention: Attention
    feed_forward: FeedForward
    norm_parameters: int = 0

    @property
    def parameters(self) -> int:
        """Parameters of one of these layers."""
        return self.attention.parameters + self.feed_forward.parameters + self.norm_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters of one of these layers that one token uses."""
        return self.attention.parameters + self.feed_forward.active_parameters + self.norm_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A decoder-only language model.

    ``layers`` groups equal layers (their order in the network does not matter here). ``embedding_parameters`` is
    the input table (with learned positions), ``head_parameters`` the output projection, 0 where it is tied.
    ``weights`` is the checkpoint's own precision for the quantised linear layers, ``dtype`` that of everything
    else; ``quantised_parameters`` says how many parameters ``weights`` applies to (None: all of them, one format), and
    ``quantised_parts`` which (None: attention, feed-forward and experts); ``part_formats`` are the parts' own where a
    checkpoint mixes formats. ``checkpoint_bytes`` is the exact size of
    the stored tensors where a GGUF header or a safetensors index gives it, ``stored_bytes`` the same by part (GGUF).
    ``uncounted`` names parts of the checkpoint that the counts leave out (a vision tower, layers that only draft);
    ``drafting_parameters`` are those of multi-token prediction layers and ``tower_parameters`` those of a vision tower,
    where they are known, beside ``parameters``.
    """

    name: str
    family: str
    layers: tuple[Layers, ...]
    hidden_size: int
    vocab_size: int
    embedding_parameters: int
    head_parameters: int
    final_norm_parameters: int
    max_context_tokens: int | None
    weights: Precision
    dtype: Precision
    quantised_parameters: int | None = None
    source: str = ""
    quantised_parts: frozenset[WeightPart] | None = None
    part_formats: tuple[tuple[WeightPart, Precision], ...] = ()
    checkpoint_bytes: int | None = None
    stored_bytes: tuple[tuple[WeightPart, int], ...] = ()
    uncounted: tuple[str, ...] = ()
    drafting_parameters: int = 0
    tower_parameters: int = 0

    @property
    def layer_count(self) -> int:
        """Layers in all."""
        return sum(group.count for group in self.layers)

    @property
    def tied(self) -> bool:
        """Whether the output projection is the input table."""
        return self.head_parameters == 0

    @property
    def parameters(self) -> int:
        """All parameters of the language model, as plain decoding loads it."""
        inside = sum(group.count * group.parameters for group in self.layers)
        return inside + self.embedding_parameters + self.head_parameters + self.final_norm_parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that one token uses, embedding and head included (as model cards count them)."""
        inside = sum(group.count * group.active_parameters for group in self.layers)
        return inside + self.embedding_parameters + self.head_parameters + self.final_norm_parameters

    @property
    def window_tokens(self) -> int | None:
        """The window of the windowed layers, None where there are none."""
        windows = [each.attention.window_tokens for each in self.layers if each.attention.window_tokens]
        return max(windows, default=None)

    @property
    def read_window_tokens(self) -> int | None:
        """The most tokens that a query reads in the layers that do not read all: the window, or sparse top-k."""
        limits = [each.attention.window_tokens or each.attention.attended_tokens for each in self.layers]
        return max((each for each in limits if each), default=None)

    def attentions(self) -> Iterator[tuple[int, Attention]]:
        """(count, attention) for each group of layers."""
        return ((group.count, group.attention) for group in self.layers)
