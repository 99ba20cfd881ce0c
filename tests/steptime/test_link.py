"""Messages between two ranks."""

import pytest

from servewise.errors import InputError, UnknownName
from servewise.hardware.catalogue import catalogue, load_accelerator
from servewise.steptime.link import link_time, network_names

# NCCL send/receive as Vidur timed it: (where, bytes, seconds). https://github.com/microsoft/vidur/tree/7d475133
# data/profiling/network/{h100_dgx,a100_dgx}/send_recv.csv; the last two lie between two nodes.
TIMED = [
    ("h100-sxm", 2_621_440, 16e-6),
    ("h100-sxm", 65_536_000, 189e-6),
    ("a100-80gb", 722_944, 17e-6),
    ("a100-80gb", 34_471_936, 158e-6),
    ("InfiniBand NDR", 2_048, 17e-6),
    ("infiniband-ndr", 65_536_000, 2055e-6),
]


@pytest.mark.parametrize(("where", "size", "seconds"), TIMED)
def test_messages_take_what_was_timed(where: str, size: int, seconds: float) -> None:
    """Timed sends are within 15% (their own times jump by as much between neighbouring sizes)."""
    assert link_time(where).seconds(size) == pytest.approx(seconds, rel=0.15)


def test_no_link_beats_its_nominal_rate() -> None:
    """Two ranks never send faster than the whole link's nominal rate, over any accelerator's link."""
    for each in catalogue().values():
        if each.link is not None:
            assert link_time(each).bytes_per_s <= each.link.bandwidth.value


def test_every_link_of_the_catalogue_has_a_measured_or_assumed_efficiency() -> None:
    """No link of the catalogue falls to its nominal rate for want of a row."""
    assert {link_time(each).source for each in catalogue().values() if each.link} >= {"efficiency as NVLink"}
    assert "nominal" not in {link_time(each).source for each in catalogue().values() if each.link}


def test_no_bytes_take_no_time() -> None:
    """An empty message is not sent."""
    assert link_time("h100-sxm").seconds(0) == 0.0


def test_a_larger_message_never_takes_less() -> None:
    """Time rises with the bytes over every named network."""
    for name in network_names():
        times = [link_time(name).seconds(size) for size in (1, 1e3, 1e6, 1e9)]
        assert times == sorted(times)


def test_unknown_links_are_one_clear_line() -> None:
    """A name that is neither a network nor an accelerator offers the nearest ones; a Mac has no link."""
    with pytest.raises(UnknownName, match="InfiniBand"):
        link_time("InfiniBand ND")
    with pytest.raises(InputError, match="no link"):
        link_time(load_accelerator("m2-ultra"))
