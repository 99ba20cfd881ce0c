"""Device memory against totals that engines printed in public threads: what engines take their share of."""

from __future__ import annotations

import pytest

from servewise.hardware.catalogue import load_accelerator

PRINTED_GIB = [
    ("RTX 3090", 23.58, "https://github.com/vllm-project/vllm/issues/10517"),
    ("RTX 3090", 23.68, "https://github.com/vllm-project/vllm/issues/16343"),
    ("RTX 4090", 23.52, "https://github.com/sgl-project/sglang/issues/12496"),
    ("RTX 5090", 31.37, "https://github.com/Wan-Video/Wan2.1/issues/465"),
    ("A100 40GB", 39.5, "https://github.com/vllm-project/vllm/issues/12330"),
    ("A100 40GB", 39.56, "https://github.com/drboog/ProFusion/issues/3"),
    ("H100 80GB", 79.11, "https://github.com/vllm-project/vllm/issues/27508"),
    ("H20-3e 141GB", 139.72, "https://github.com/vllm-project/vllm/issues/13074"),
    ("V100 16GB", 15.77, "https://github.com/meta-llama/llama/issues/918"),
    ("T4", 14.75, "https://github.com/hpcaitech/Open-Sora/issues/697"),
    ("A10", 21.99, "https://github.com/zai-org/CogVLM/issues/236"),
    ("RTX 6000 Ada", 44.43, "https://github.com/DINGYANB/MTVCrafter/issues/21"),
    ("MI355X", 287.98, "https://github.com/pytorch/pytorch/issues/175431"),
]


@pytest.mark.parametrize(("device", "gib", "address"), PRINTED_GIB)
def test_memory_is_what_engines_print(device: str, gib: float, address: str) -> None:
    """The catalogue's memory lies within 1.5% of what PyTorch or vLLM printed on that device, driver to driver."""
    assert load_accelerator(device).memory_bytes == pytest.approx(gib * 2**30, rel=0.015), address


@pytest.mark.parametrize(
    ("device", "mib"),
    [
        # nvidia-smi totals: https://github.com/modal-labs/modal-client/pull/2797 (2025-01)
        # B200: https://github.com/NVIDIA/TensorRT-LLM/issues/10278 (2025-12)
        ("H100 80GB", 81559), ("A100 80GB", 81920), ("A100 40GB", 40960), ("A10", 23028), ("L40S", 46068),
        ("L4", 23034), ("T4", 15360), ("B200", 183359), ("RTX PRO 6000", 97887),
    ],
)  # fmt: skip
def test_cuda_sees_less_than_nvidia_smi(device: str, mib: int) -> None:
    """What CUDA hands out is 0.3% to 6% below nvidia-smi's total: driver and ECC keep the difference."""
    share = load_accelerator(device).memory_bytes / (mib * 2**20)
    assert 0.94 <= share <= 0.997
