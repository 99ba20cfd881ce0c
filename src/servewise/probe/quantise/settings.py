"""What is measured: one target at a time, by bits, groups, grid and method; what each setting stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from servewise.engine.config import DecoderConfig
from servewise.engine.quantised.gptq import Gptq
from servewise.engine.quantised.grid import SCALES, Grid
from servewise.engine.quantised.scheme import KvScheme, Scheme
from servewise.errors import InputError, UnknownName
from servewise.techniques.quantisation import matrix_bytes

TARGETS = ("weights", "kv", "activations")
METHODS = ("rtn", "gptq")
GRIDS = ("symmetric", "asymmetric")
KEYS = ("channel", "token")
PACKED_GROUPS = (32, 64, 128, 256)
BYTES_16_BIT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the table. ``group`` None: a scale a channel (weights), a token and head (KV), a token (activations).

    ``keys``: how the KV cache's keys share their steps, by channel within a block or by token; else None.
    """

    target: str
    bits: int
    group: int | None = None
    symmetric: bool = True
    method: str = "rtn"
    keys: str | None = None

    @property
    def name(self) -> str:
        """A name that tells settings apart, e.g. ``weights-4-32-asymmetric-gptq``."""
        grid = "symmetric" if self.symmetric else "asymmetric"
        parts = (self.target, str(self.bits), str(self.group or "channel"), grid, self.method)
        return "-".join(parts if self.keys is None else (*parts, self.keys))

    def weights(self, *, tables: bool) -> Scheme:
        """The engine's scheme for weights, or for activations."""
        if self.target == "activations":
            return Scheme(activations=True)
        grid = Grid(bits=self.bits, group=self.group, symmetric=self.symmetric)
        return Scheme(weights=grid, method=Gptq() if self.method == "gptq" else None, tables=tables)

    def kv(self) -> KvScheme:
        """The engine's scheme for the KV cache."""
        return KvScheme(bits=self.bits, group=self.group, symmetric=self.symmetric, keys=self.keys or "channel")

    @property
    def runs(self) -> str:
        """``packed`` where the engine keeps only these bits on a CPU in bf16 (weights) or at any dtype (KV)."""
        by_channel = self.bits == 8 and self.symmetric and self.group is None
        by_group = self.bits == 4 and self.group in PACKED_GROUPS
        packed = self.target == "kv" or (self.target == "weights" and (by_channel or by_group))
        return "packed" if packed else "emulated"


def settings_of(
    targets: Sequence[str],
    bits: Sequence[int],
    groups: Sequence[int | None],
    grids: Sequence[str],
    methods: Sequence[str],
    keys: Sequence[str],
    config: DecoderConfig,
) -> tuple[Setting, ...]:
    """Every combination that makes sense, in order of target, method, bits (most first), group (largest first).

    Groups of KV values that a head does not hold more than once are left out; activations have 8 bits alone.
    """
    for given, known, where in (
        (targets, TARGETS, "target"),
        (grids, GRIDS, "grid"),
        (methods, METHODS, "method"),
        (keys, KEYS, "keys"),
    ):
        for each in given:
            if each not in known:
                raise UnknownName(where, each, known, where=where, hint=f"one of {', '.join(known)}")
    found = list(_combinations(targets, bits, groups, grids, methods, keys, config.head_dim))
    if not found:
        raise InputError("no setting is left to measure", hint="give bits, groups, grids and targets that go together")
    return tuple(dict.fromkeys(found))


def _combinations(
    targets: Sequence[str],
    bits: Sequence[int],
    groups: Sequence[int | None],
    grids: Sequence[str],
    methods: Sequence[str],
    keys: Sequence[str],
    head_dim: int,
) -> Iterator[Setting]:
    shapes = [(b, group, grid == "symmetric") for b, group, grid in product(bits, groups, grids)]
    if "weights" in targets:
        for method, (b, group, symmetric) in product(methods, shapes):
            yield Setting(target="weights", bits=b, group=group, symmetric=symmetric, method=method)
    if "kv" in targets:
        for by, (b, group, symmetric) in product(keys, shapes):
            if group is None or group < head_dim:
                yield Setting(target="kv", bits=b, group=group, symmetric=symmetric, keys=by)
    if "activations" in targets:
        yield Setting(target="activations", bits=8)


def shapes_of(config: DecoderConfig) -> list[tuple[int, int]]:
    """(outputs, inputs) of every matrix of the layers, queries, keys and values as one, gate and up as one."""
    width, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    layer = [
        (width + 2 * kv, config.hidden),
        (config.hidden, width),
        (2 * config.intermediate, config.hidden),
        (config.hidden, config.intermediate),
    ]
    return layer * config.layers


def stored_bytes(setting: Setting, config: DecoderConfig, *, tables: bool, block_tokens: int) -> int:
    """Bytes of the weights, or of the KV cache a token, with this setting [bytes]; the other parts in 16 bits."""
    if setting.target == "kv":
        return kv_bytes_per_token(setting, config, block_tokens)
    quantised = shapes_of(config)
    table = (config.vocabulary, config.hidden)
    counted = [table] if config.tied else [table, table]
    if setting.target == "activations":
        return sum(BYTES_16_BIT * rows * columns for rows, columns in (*quantised, *counted))
    if tables:
        quantised, counted = quantised + counted, []
    zero_bits = 0 if setting.symmetric else 16
    total = sum(
        matrix_bytes(rows, columns, setting.bits, min(setting.group or columns, columns), zero_bits=zero_bits)
        for rows, columns in quantised
    )
    return total + sum(BYTES_16_BIT * rows * columns for rows, columns in counted)


def kv_bytes_per_token(setting: Setting, config: DecoderConfig, block_tokens: int) -> int:
    """Bytes that a token's keys and values take in all layers, scales and offsets included [bytes], rounded up."""
    scheme = setting.kv()
    steps = SCALES["fp16"].itemsize * (1 if setting.symmetric else 2)
    codes = -(-config.head_dim * setting.bits // 8)
    groups = -(-config.head_dim // (scheme.group or config.head_dim))
    by_token = codes + groups * steps
    by_channel = codes + config.head_dim * steps / block_tokens
    keys = by_channel if scheme.keys == "channel" else by_token
    return -int(-(keys + by_token) * config.kv_heads * config.layers // 1)
