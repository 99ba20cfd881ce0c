"""What is measured of which server."""

from __future__ import annotations

import pytest

from servewise.ask.serve_small.variants import PARTS, SERVERS, names_in, variants
from servewise.ask.serve_small.wanted import Wanted
from servewise.errors import InputError


def test_every_server_has_its_16_bit_run_and_its_prefix_cache_off_and_on() -> None:
    """The study's steps are there for all three, at each number of streams."""
    found = variants(tuple(SERVERS), PARTS, (1, 8, 32), (1, 8))
    for server in SERVERS:
        own = [each for each in found if each.server == server]
        assert [each.weights for each in own if each.part == "16-bit"] == ["bf16"]
        assert [each.prefix_cache for each in own if each.part == "prefix"] == [False, True]
        assert {each.streams for each in own if each.part in ("16-bit", "quantised")} == {(1, 8, 32)}
        assert {each.streams for each in own if each.part == "prefix"} == {(1, 8)}


def test_llama_cpp_is_measured_with_and_without_its_continuous_batching() -> None:
    """By its own switch; the own engine by its three policies."""
    found = variants(tuple(SERVERS), ("batching",), (1,), (1,))
    assert {(each.server, each.batching) for each in found} == {
        ("llamacpp", "continuous"),
        ("llamacpp", "none"),
        ("own", "static"),
        ("own", "dynamic"),
        ("own", "continuous"),
    }


def test_no_two_variants_share_a_folder() -> None:
    """Each has a name of its own."""
    names = [each.name for each in variants(tuple(SERVERS), PARTS, (1,), (1,))]
    assert len(set(names)) == len(names)


def test_a_run_has_full_rounds_of_all_streams() -> None:
    """A static batch starts only when it is full, so requests come in multiples of the streams."""
    wanted = Wanted(model="m", threads=2, requests=3)
    for variant in variants(("own",), PARTS, (1, 4, 8, 32), (1, 8)):
        for streams in variant.streams:
            requests = wanted.load(variant, streams).requests
            assert requests is not None
            assert requests % streams == 0
            assert requests >= 3 * streams


def test_the_longest_request_fits_into_the_context() -> None:
    """Prefix, prompt and the longest answer together."""
    assert Wanted(model="m", threads=1).context_tokens >= 512 + 128 + 112


@pytest.mark.parametrize("given", [(), ("sglang",), ("llamacp",)])
def test_an_unknown_server_is_refused_with_the_known_ones(given: tuple[str, ...]) -> None:
    """The message names what there is."""
    with pytest.raises(InputError, match="llamacpp"):
        names_in(given, tuple(SERVERS), "servers")
