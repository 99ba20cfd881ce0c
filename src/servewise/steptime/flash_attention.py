"""Where vLLM attends with FlashAttention 2, which decodes beside prompts in the prompts' tiles.

vLLM takes FlashAttention 3 on compute capability 9 (it packs the query heads of a group into a tile), other backends on
10 and on other vendors, and version 2 elsewhere (``vllm/v1/attention/backends/fa_utils.py``). Version 2 swaps query
heads into the tile, and splits keys over blocks, only where every sequence has one query; with a prompt in the batch
each head of each decoding sequence takes a tile of 64 rows by itself. TensorRT-LLM and SGLang decode in a kernel of
their own.
"""

from __future__ import annotations

from servewise.steptime.coefficients import TiledDecode

ENGINES = ("vllm",)
# Compute capability 8.0, 8.6, 8.9, 12.0 and 12.1.
ACCELERATORS = frozenset(
    (
        *("a100-40gb", "a100-80gb", "a100-80gb-pcie"),
        *("a10", "a10g", "a40", "a6000", "rtx-3080", "rtx-3090", "rtx-3090-ti"),
        *("l4", "l40", "l40s", "rtx-4000-ada", "rtx-5000-ada", "rtx-6000-ada", "rtx-4080", "rtx-4090"),
        *("rtx-5090", "rtx-pro-6000", "rtx-pro-6000-server", "gb10"),
    )
)
# 64 query rows, 128 keys: run_mha_fwd_splitkv_dispatch of FlashAttention 2, which paged caches take. The time of a tile
# that ends at once: 3.1 ns on an RTX 4090, 1.9 ns on an RTX PRO 6000 (benchmarks/data/card_kernels).
TILES = TiledDecode(rows=64, keys=128, block_s=2.5e-9)


def tiled_decode(accelerator: str, engine: str) -> TiledDecode | None:
    """How that engine decodes beside prompts on that accelerator; None: in a kernel of its own.

    >>> tiled_decode("rtx-4090", "vllm").rows
    64
    >>> tiled_decode("h100-sxm", "vllm")
    """
    return TILES if engine in ENGINES and accelerator in ACCELERATORS else None
