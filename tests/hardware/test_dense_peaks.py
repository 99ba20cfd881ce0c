"""Peaks against the vendors' own dense figures, typed from their pages: a sparse figure would stand out by two."""

from __future__ import annotations

import pytest

from servewise.hardware.catalogue import catalogue

# TFLOP/s (int8: TOP/s) without sparsity, memory bandwidth in GB/s. Addresses: the block's `source` in catalogue.toml;
# H100: Hopper whitepaper v1.04 table 2; Ampere: A100 datasheet 2021-06; Ada: whitepaper v2.01 appendix;
# GeForce Blackwell: whitepaper v1.1 table 2; AMD: product pages; Google: docs.cloud.google.com/tpu/docs.
DENSE: dict[str, dict[str, float]] = {
    "a100-40gb": {"bf16": 312, "tf32": 156, "int8": 624, "fp32": 19.5, "bandwidth": 1555},
    "a100-80gb": {"bf16": 312, "tf32": 156, "int8": 624, "fp32": 19.5, "bandwidth": 2039},
    "a100-80gb-pcie": {"bf16": 312, "bandwidth": 1935},
    "h100-sxm": {"bf16": 989.4, "tf32": 494.7, "fp8": 1978.9, "int8": 1978.9, "fp32": 66.9, "bandwidth": 3352},
    "h100-pcie": {"bf16": 756, "fp8": 1513, "fp32": 51.2, "bandwidth": 2000},
    "h200": {"bf16": 989.4, "fp8": 1978.9, "bandwidth": 4800},
    "b200": {"bf16": 2250, "fp8": 4500, "fp4": 9000, "tf32": 1125, "bandwidth": 8000},
    "gb200": {"bf16": 2500, "fp8": 5000, "fp4": 10000, "bandwidth": 8000},
    "l4": {"bf16": 121, "fp8": 242.5, "fp32": 30.3, "bandwidth": 300},
    "l40s": {"bf16": 362.05, "fp8": 733, "fp32": 91.6, "bandwidth": 864},
    "a10": {"bf16": 125, "int8": 250, "fp32": 31.2, "bandwidth": 600},
    "a10g": {"bf16": 70, "int8": 140, "fp32": 35, "bandwidth": 600},
    "a40": {"bf16": 149.7, "int8": 299.3, "fp32": 37.4, "bandwidth": 696},
    "t4": {"fp16": 65, "int8": 130, "fp32": 8.1, "bandwidth": 320},
    "v100-32gb": {"fp16": 125, "fp32": 15.7, "bandwidth": 900},
    "rtx-3090": {"bf16": 71, "int8": 284, "fp32": 35.6, "bandwidth": 936},
    "rtx-3080": {"bf16": 59.5, "int8": 238, "fp32": 29.8, "bandwidth": 760},
    "rtx-3090-ti": {"bf16": 80, "int8": 320, "fp32": 40, "bandwidth": 1008},
    "rtx-4080": {"bf16": 97.5, "fp8": 194.9, "int8": 389.9, "fp32": 48.7, "bandwidth": 716.8},
    "rtx-4090": {"bf16": 165.2, "fp8": 330.3, "int8": 660.6, "fp32": 82.6, "bandwidth": 1008},
    "rtx-5090": {"bf16": 209.5, "fp8": 419, "fp4": 1676, "fp32": 104.8, "bandwidth": 1792},
    "mi300x": {"bf16": 1307.4, "fp8": 2614.9, "tf32": 653.7, "bandwidth": 5300},
    "mi325x": {"bf16": 1307.4, "fp8": 2614.9, "bandwidth": 6000},
    "mi355x": {"bf16": 2516.6, "fp8": 5033.2, "fp4": 10066.3, "bandwidth": 8000},
    "tpu-v5e": {"bf16": 197, "int8": 393, "bandwidth": 819},
    "tpu-v5p": {"bf16": 459, "int8": 918, "bandwidth": 2765},
    "tpu-v6e": {"bf16": 918, "int8": 1836, "bandwidth": 1638},
}
# Where 8-bit arithmetic is not twice 16-bit: one unit serves both (Gaudi 3), FP32 accumulation halves only FP8's rate
# against INT8 but not FP16's against it (GeForce), 8-bit reuses the 16-bit path (CDNA 2, GB10), or FP8 is absent.
NOT_TWICE = {"gaudi-3", "mi250x", "gb10"}


@pytest.mark.parametrize("name", sorted(DENSE))
def test_peaks_are_the_vendors_dense_figures(name: str) -> None:
    """Every peak and the bandwidth are within 1% of what the vendor prints without sparsity."""
    accelerator = catalogue()[name]
    for key, printed in DENSE[name].items():
        ours = accelerator.bandwidth.value / 1e9 if key == "bandwidth" else accelerator.peaks[key].value / 1e12
        assert ours == pytest.approx(printed, rel=0.01), key


@pytest.mark.parametrize("name", sorted(set(catalogue()) - NOT_TWICE))
def test_fp8_is_twice_bf16(name: str) -> None:
    """Tensor units take twice as many 8-bit as 16-bit operands a cycle; a sparse figure would give four or one."""
    peaks = catalogue()[name].peaks
    if "fp8" in peaks:
        assert peaks["fp8"].value == pytest.approx(2 * peaks["bf16"].value, rel=0.03)


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_fewer_bits_are_never_slower(name: str) -> None:
    """Halving the operand never lowers the peak: fp64 <= fp32 <= bf16 <= fp8 <= fp4 where the chip has them."""
    peaks = catalogue()[name].peaks
    chain = [peaks[each].value for each in ("fp64", "fp32", "tf32", "bf16", "fp8", "fp6", "fp4") if each in peaks]
    assert chain == sorted(chain)


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_numbers_lie_where_hardware_lies(name: str) -> None:
    """The ridge (FLOP a byte) is that of real chips, and no link is faster than the memory it is fed from."""
    accelerator = catalogue()[name]
    ridge = max(each.value for each in accelerator.peaks.values()) / accelerator.bandwidth_bytes_per_s
    assert 20 < ridge < 3000  # AMX on DDR5 is the highest
    if accelerator.link is not None:
        assert 1e9 < accelerator.link.bandwidth.value < accelerator.bandwidth_bytes_per_s
        assert 1e-7 < accelerator.link.latency.value < 1e-4


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_device_reports_about_what_the_box_says(name: str) -> None:
    """The reported memory is 7% below to 8% above the title's gigabytes (Metal and CPUs have rules of their own)."""
    accelerator = catalogue()[name]
    sizes = [
        word for word in accelerator.title.replace("(", " ").split() if word.endswith("GB") and word[:-2].isdigit()
    ]
    if not sizes or accelerator.title.startswith("Apple"):
        return
    printed = float(sizes[-1][:-2]) * 1e9 / (2 if name == "mi250x" else 1)
    assert 0.93 * printed <= accelerator.memory_bytes <= 1.08 * printed
