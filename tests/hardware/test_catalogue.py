"""The shipped catalogue: complete, sourced, dense, and consistent with itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from tomllib import loads

import pytest

from servewise.errors import UnknownName
from servewise.hardware.accelerator import Accelerator, Quantity
from servewise.hardware.catalogue import CATALOGUE_FILE, catalogue, load_accelerator
from servewise.hardware.toml_file import parse_catalogue
from servewise.tables import read_toml

MEASURED_SYSTEMS = {"a100-80gb", "h100-sxm", "h200", "l40s"}  # step times exist for these four
NAMES = """
a100-40gb a100-80gb a100-80gb-pcie h100-sxm h100-pcie h100-nvl h200 b200 b300 gb200 gh200 l4 l40s a10g a10 a40
a6000 t4 v100-16gb v100-32gb rtx-3090 rtx-4090 rtx-5090 rtx-pro-6000 mi250x mi300x mi325x mi355x gaudi-2
gaudi-3 tpu-v5e tpu-v5p tpu-v6e m1-max m2-ultra m3-max m3-ultra m4-max epyc-9654 xeon-8480
"""


def quantities(accelerator: Accelerator) -> Iterator[Quantity]:
    """Every number of one accelerator."""
    yield accelerator.memory
    yield accelerator.bandwidth
    yield from accelerator.peaks.values()
    if accelerator.link is not None:
        yield accelerator.link.bandwidth
        yield accelerator.link.latency


def test_holds_the_accelerators_that_the_field_uses() -> None:
    """The catalogue holds at least 34 accelerators, those named in the acceptance list among them."""
    assert len(catalogue()) >= 34
    assert set(NAMES.split()) <= set(catalogue())


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_number_knows_its_source(name: str) -> None:
    """Each number has a unit, an address, a date and a standing."""
    for each in quantities(catalogue()[name]):
        assert each.unit in {"bytes", "bytes/s", "FLOP/s", "s"}
        assert each.source.startswith("https://")
        assert each.date[:2] == "20"
        assert each.standing in {"measured", "vendor", "assumed"}


@pytest.mark.parametrize("name", sorted(set(catalogue()) - MEASURED_SYSTEMS))
def test_kin_has_measured_step_times_and_a_reason(name: str) -> None:
    """An accelerator without step times of its own names one that has them, and says why that one."""
    assert catalogue()[name].kin in MEASURED_SYSTEMS
    assert "Kin: " in catalogue()[name].notes


@pytest.mark.parametrize("name", sorted(MEASURED_SYSTEMS))
def test_measured_systems_need_no_kin(name: str) -> None:
    """The four systems with step times stand for themselves."""
    assert catalogue()[name].kin is None


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-80gb-pcie"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA A10", "a10"),
        ("Tesla T4", "t4"),
        ("Tesla V100-SXM2-16GB", "v100-16gb"),
        ("NVIDIA RTX A6000", "a6000"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 5090", "rtx-5090"),
        ("AMD Instinct MI300X", "mi300x"),
        ("Apple M2 Ultra", "m2-ultra"),
        ("AMD EPYC 9654 96-Core Processor", "epyc-9654"),
        ("a100", "a100-80gb"),
        ("h100", "h100-sxm"),
        ("h100-80gb", "h100-sxm"),
        ("4090", "rtx-4090"),
    ],
)
def test_names_as_drivers_and_people_give_them(printed: str, name: str) -> None:
    """A device name as its driver prints it, or as people shorten it, finds its entry."""
    assert load_accelerator(printed).name == name


def test_unknown_name_offers_the_nearest() -> None:
    """A name that is in no catalogue is refused with the nearest names."""
    with pytest.raises(UnknownName, match="h100-sxm"):
        load_accelerator("h100-smx")


def test_reading_is_fast() -> None:
    """The file costs at most three times what its TOML alone costs to parse (best of five each, in turn)."""
    text = CATALOGUE_FILE.read_text("utf-8")

    def seconds(work: Callable[[], object]) -> float:
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    pairs = [
        (seconds(lambda: parse_catalogue(read_toml(CATALOGUE_FILE), "catalogue.toml")), seconds(lambda: loads(text)))
        for _ in range(5)
    ]
    assert min(whole for whole, _ in pairs) < 3 * min(bare for _, bare in pairs)
