"""A user's own accelerator file: three numbers are enough, and whatever is wrong is told in one line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from servewise.errors import InputError
from servewise.hardware.catalogue import CATALOGUE_FILE, custom_accelerator, load_accelerator
from servewise.tables import read_toml

MINIMAL = "peak_flops = 312e12\nbandwidth = 2e12\nmemory = 80e9\n"
FULL = """
title = "Our card"
source = "sheet"
memory = [80_000_000_000, "us"]
bandwidth = 2e12
peaks = { bf16 = 1e15, fp8 = 2e15 }
link = { name = "ours", bandwidth = 100e9, latency = [1e-6, "us"] }
kin = "h100-sxm"
notes = "In the lab."
[sources]
sheet = { at = "https://example.org/card.pdf", date = "2026-01", standing = "vendor" }
us = { at = "our own bench", date = "2026-02", standing = "measured", note = "cold" }
"""


def write(folder: Path, text: str | bytes) -> str:
    """A TOML file of that content."""
    path = folder / "card.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_three_numbers_are_enough(tmp_path: Path) -> None:
    """A file with peak, bandwidth and memory is an accelerator whose every number stands as assumed."""
    card = load_accelerator(write(tmp_path, MINIMAL))
    assert (card.memory_bytes, card.bandwidth_bytes_per_s) == (80e9, 2e12)
    assert {card.peak_flops(each) for each in ("fp32", "bf16", "fp8", "int8", "fp4")} == {312e12}
    assert {each.standing for each in (card.memory, card.bandwidth, *card.peaks.values())} == {"assumed"}
    assert card.name == "card"


def test_full_form(tmp_path: Path) -> None:
    """The catalogue's own keys work in a user's file, each number with the source it names."""
    card = load_accelerator(write(tmp_path, FULL))
    assert card.title == "Our card"
    assert card.memory.source == "our own bench (cold)"
    assert card.memory.standing == "measured"
    assert card.peaks["fp8"].source == "https://example.org/card.pdf"
    assert card.link is not None
    assert card.link.latency.value == 1e-6
    assert card.kin == "h100-sxm"


def test_custom_needs_no_file() -> None:
    """Three plain numbers make an accelerator that is in no catalogue."""
    card = custom_accelerator(peak_flops=1e15, bandwidth=3e12, memory=96e9, title="Any card")
    assert (card.title, card.peak_flops("nvfp4".removeprefix("nv")), card.kin) == ("Any card", 1e15, None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("peak_flops = 312e12\nbandwidth = 2e12\n", "lacks memory"),
        ("bandwidth = 2e12\nmemory = 80e9\n", "either peak_flops or peaks"),
        (MINIMAL + "peaks = { bf16 = 1e12 }\n", "either peak_flops or peaks"),
        (MINIMAL + "bandwith = 3\n", "did you mean bandwidth"),
        ("peak_flops = 312\nbandwidth = 2e12\nmemory = 80e9\n", "312 TFLOP/s is 312e12"),
        ("peak_flops = 312e12\nbandwidth = 2e12\nmemory = 80\n", "80 GB is 80e9"),
        ("peak_flops = nan\nbandwidth = 2e12\nmemory = 80e9\n", "out of range"),
        ("peak_flops = inf\nbandwidth = 2e12\nmemory = 80e9\n", "out of range"),
        ("peak_flops = -1e12\nbandwidth = 2e12\nmemory = 80e9\n", "out of range"),
        ("peak_flops = true\nbandwidth = 2e12\nmemory = 80e9\n", "must be a number"),
        ("peak_flops = '312e12'\nbandwidth = 2e12\nmemory = 80e9\n", "must be a number"),
        (f"peak_flops = 1{'0' * 5000}\nbandwidth = 2e12\nmemory = 80e9\n", "TOML"),
        (f"peak_flops = 1{'0' * 400}\nbandwidth = 2e12\nmemory = 80e9\n", "out of range"),
        (MINIMAL + "link = { name = 'x' }\n", "lacks bandwidth, latency"),
        (MINIMAL + "link = 3\n", "must be a table"),
        (MINIMAL + "source = 'nowhere'\n", "unknown source"),
        (MINIMAL + "kin = 'h100-smx'\n", "did you mean h100-sxm"),
        (MINIMAL + "[sources]\na = { at = 'x', standing = 'rumour' }\n", "measured, vendor, assumed"),
        ("bandwidth = 2e12\nmemory = 80e9\npeaks = { bf17 = 1e12 }\n", "bf16"),
        ("bandwidth = 2e12\nmemory = 80e9\npeaks = {}\n", "at least one format"),
        ("bandwidth = 2e12\nmemory = [80e9]\npeaks = { bf16 = 1e12 }\n", "[number, source]"),
        ("peak_flops = [1, ", "is not TOML"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"[" * 100_000, "TOML"),
        (b"a = " + b"[" * 50_000 + b"]" * 50_000, "TOML"),
        (b"#" * 2_000_000, "larger than"),
    ],
)
def test_each_mistake_is_one_clear_line(tmp_path: Path, text: str | bytes, told: str) -> None:
    """A wrong file raises InputError, in one line that names the file and what to mend."""
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_accelerator(path)
    assert told in str(caught.value)
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("path", ["/nowhere/card.toml", "/", "a\0b.toml", "x" * 5000 + ".toml"])
def test_files_that_cannot_be_opened(path: str) -> None:
    """A path that is missing, a folder, or no path at all is wrong input, not a crash."""
    with pytest.raises(InputError, match="cannot be read"):
        load_accelerator(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mangled_catalogue_never_crashes(tmp_path: Path, data: st.DataObject) -> None:
    """Cutting, doubling or overwriting bytes of a good file gives an accelerator or InputError, nothing else."""
    good = bytearray(data.draw(st.sampled_from([MINIMAL.encode(), FULL.encode()])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(good)))
        cut = data.draw(st.integers(0, 20))
        good[at : at + cut] = data.draw(st.binary(max_size=12))
    with suppress(InputError):
        load_accelerator(write(tmp_path, bytes(good)))


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("peak_flops", "bandwidth", "memory"), _values)))
def test_custom_refuses_whatever_is_no_number(given_values: dict[str, object]) -> None:
    """Any value in place of the three numbers is taken as a plausible number or refused by InputError."""
    numbers = {"peak_flops": 1e12, "bandwidth": 1e12, "memory": 1e10} | given_values
    try:
        card = custom_accelerator(**numbers)  # type: ignore[arg-type]
    except InputError:
        return
    assert card.memory_bytes > 0


def test_the_shipped_file_lists_no_idle_source() -> None:
    """Every source that the catalogue lists is used by a number."""
    text = CATALOGUE_FILE.read_text()
    idle = [key for key in read_toml(CATALOGUE_FILE)["sources"] if text.count(f'"{key}"') == 0]
    assert idle == []
