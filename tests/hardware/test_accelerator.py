"""An accelerator's arithmetic: peaks by format, and the user's own numbers in their place."""

from __future__ import annotations

import pytest

from servewise.errors import InputError
from servewise.hardware.catalogue import catalogue, load_accelerator


def test_formats_without_a_unit_fall_to_the_next() -> None:
    """An A100 expands fp8 and fp4 to bf16; a T4, which has no bf16, computes in fp16; an MI300X runs fp4 as fp8."""
    a100, t4, mi300x = (load_accelerator(name) for name in ("a100", "t4", "mi300x"))
    assert {a100.peak_flops(each) for each in ("fp8", "fp6", "fp4", "bf16")} == {312e12}
    assert t4.peak_flops("bf16") == t4.peak_flops("fp16") == 65e12
    assert mi300x.peak_flops("fp4") == mi300x.peak_flops("fp8")


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_accelerator_computes_in_every_format_of_serving(name: str) -> None:
    """bf16, fp16, fp8, int8 and fp4 have a peak everywhere, their own or that of the format they expand to."""
    accelerator = catalogue()[name]
    assert all(accelerator.peak_flops(each) > 0 for each in ("bf16", "fp16", "fp8", "int8", "fp6", "fp4"))


def test_overrides_replace_and_are_remembered() -> None:
    """The user's numbers take the place of the catalogue's, as assumed, and the device knows which were given."""
    changed = load_accelerator("a100").with_overrides(bandwidth=2e12, peak_flops=3e14)
    assert (changed.bandwidth_bytes_per_s, changed.bandwidth.standing) == (2e12, "assumed")
    assert {each.value for each in changed.peaks.values()} == {3e14}
    assert changed.memory == load_accelerator("a100").memory
    assert changed.overridden == {"bandwidth", "peak_flops"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"memory": 80.0}, "80 GB is 80e9"),
        ({"memory": -80e9}, "--memory"),
        ({"bandwidth": 2039.0}, "2,039 GB/s is 2039e9"),
        ({"peak_flops": 312.0}, "312 TFLOP/s is 312e12"),
        ({"peak_flops": float("nan")}, "--peak-flops"),
        ({"bandwidth": float("inf")}, "--bandwidth"),
        ({"bandwidth": 0.0}, "--bandwidth"),
    ],
)
def test_absurd_overrides_are_refused(given: dict[str, float], told: str) -> None:
    """A number in the wrong unit, negative or without a value is refused with an example of the right one."""
    with pytest.raises(InputError) as caught:
        load_accelerator("a100").with_overrides(**given)
    assert told in str(caught.value)
