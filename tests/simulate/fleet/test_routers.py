"""Routers: choices by hand, from what each knows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from servewise.batching.sequence import Sequence
from servewise.simulate.fleet.routers.at_random import AtRandom
from servewise.simulate.fleet.routers.least_loaded import LeastLoaded
from servewise.simulate.fleet.routers.power_of_two import PowerOfTwo
from servewise.simulate.fleet.routers.prefix_aware import Balance, PrefixAware
from servewise.simulate.fleet.routers.prefix_hash import PrefixHash
from servewise.simulate.fleet.routers.round_robin import RoundRobin
from servewise.simulate.fleet.routers.router import Router
from servewise.simulate.fleet.routers.session import SessionSticky


@dataclass
class Seen:
    """A replica as a router sees it."""

    number: int
    in_flight: int = 0
    waiting: int = 0
    weight: float = 1.0


def replicas(*loads: int) -> list[Seen]:
    """Replicas of those loads, numbered from 0."""
    return [Seen(number, load) for number, load in enumerate(loads)]


def plain(serial: int = 0, hashes: tuple[int, ...] = (), prompt: int | None = None) -> Sequence:
    """A request; its prompt is as long as its blocks of 16 tokens, unless told."""
    return Sequence(serial, prompt or max(16 * len(hashes), 1), 1, hashes)


def order(router: Router, up: list[Seen], count: int) -> list[int]:
    """The numbers of the replicas that ``count`` requests go to."""
    return [up[router.choose(plain(each), up)].number for each in range(count)]


def test_round_robin_turns() -> None:
    """0, 1, 2, 0, 1, 2; without replica 1: 0, 2, 0, 2."""
    router, up = RoundRobin(), replicas(0, 0, 0)

    assert order(router, up, 6) == [0, 1, 2, 0, 1, 2]
    router.gone(1)
    assert order(router, [up[0], up[2]], 4) == [0, 2, 0, 2]


def test_weighted_round_robin_is_nginx_s() -> None:
    """Weights 5, 1, 1 give a a b a c a a (nginx's own example, commit 52327e0627f4, 2012)."""
    up = [Seen(0, weight=5.0), Seen(1, weight=1.0), Seen(2, weight=1.0)]

    assert order(RoundRobin(), up, 7) == [0, 0, 1, 0, 2, 0, 0]


def test_least_loaded_takes_the_shortest_queue() -> None:
    """Loads 2, 1, 1: the first of the two shortest. Idle ones of weights 1 and 2: the heavier."""
    assert order(LeastLoaded(), replicas(2, 1, 1), 1) == [1]
    assert order(LeastLoaded(), [Seen(0), Seen(1, weight=2.0)], 1) == [1]
    assert order(LeastLoaded(), [Seen(0, 3, weight=1.0), Seen(1, 7, weight=2.0)], 1) == [0]  # 4 / 1 = 8 / 2


def test_a_waiting_request_may_count_as_several() -> None:
    """vLLM's waiting x 4 + running: five running are less than three running and one waiting."""
    up = [Seen(0, in_flight=4, waiting=1), Seen(1, in_flight=5, waiting=0)]

    assert order(LeastLoaded(), up, 1) == [0]
    assert order(LeastLoaded(4.0), up, 1) == [1]


def test_power_of_two_never_takes_the_longest_queue() -> None:
    """Of three replicas the longest is never the better of two; each of the others comes up."""
    found = Counter(order(PowerOfTwo(Random(1)), replicas(9, 0, 5), 300))

    assert found[0] == 0
    assert abs(found[1] / 300 - 2 / 3) < 0.1  # pairs {0,1}, {1,2} of three
    assert order(PowerOfTwo(Random(1)), replicas(9), 1) == [0]


def test_random_follows_the_weights() -> None:
    """Weights 1 and 3: a quarter and three quarters, within 4 standard deviations."""
    up = [Seen(0, weight=1.0), Seen(1, weight=3.0)]
    found = Counter(order(AtRandom(Random(3)), up, 4000))

    assert abs(found[1] - 3000) < 4 * (4000 * 0.25 * 0.75) ** 0.5


def test_prefix_aware_goes_where_the_prompt_was() -> None:
    """Blocks 1, 2 went to replica 0; a prompt of 1, 2, 3 follows although replica 1 is idle, another goes to 1."""
    router, up = PrefixAware(16), replicas(0, 0)
    assert router.choose(plain(hashes=(1, 2)), up) == 0
    up[0].in_flight = 5

    assert router.choose(plain(hashes=(1, 2, 3)), up) == 0
    assert router.choose(plain(hashes=(7, 8)), up) == 1


def test_prefix_aware_needs_more_than_the_threshold() -> None:
    """One block of 16 in a prompt of 100 tokens is 16%, under 30%: to the one that was sent less."""
    router, up = PrefixAware(16), replicas(0, 0)
    router.choose(plain(hashes=(1,)), up)

    assert router.choose(plain(hashes=(1, 9), prompt=100), up) == 1


def test_prefix_aware_balances_when_loads_differ_too_much() -> None:
    """Thresholds 2 and 1.5: loads 5 and 2 differ by 3 and by a factor of 2.5; the prefix no longer counts."""
    router, up = PrefixAware(16, balance=Balance(balance_abs_threshold=2)), replicas(0, 0)
    router.choose(plain(hashes=(1, 2)), up)
    up[0].in_flight, up[1].in_flight = 5, 2

    assert router.choose(plain(hashes=(1, 2)), up) == 1


def test_prefix_aware_forgets_what_no_longer_fits_and_who_is_gone() -> None:
    """A pool of two hash blocks: after 1, 2 and then 3, 4 the first are forgotten; after a restart, all."""
    router, up = PrefixAware(16, kept_hashes=2), replicas(0)
    for hashes in ((1, 2), (3, 4)):
        router.choose(plain(hashes=hashes), up)

    assert (router.known_blocks(0, (1, 2)), router.known_blocks(0, (3, 4))) == (0, 2)
    router.gone(0)
    assert router.known_blocks(0, (3, 4)) == 0


def test_prefix_aware_does_not_know_the_answer_ahead() -> None:
    """Hashes that go on through the answer count only as far as the prompt."""
    router, up = PrefixAware(16), replicas(0)
    router.choose(plain(hashes=(1, 2, 3), prompt=32), up)

    assert router.known_blocks(0, (1, 2, 3)) == 2


def test_sessions_stay_where_they_began() -> None:
    """A prompt that begins with an earlier one goes there, however loaded; another, and one whose home is gone, not."""
    router, up = SessionSticky(), replicas(0, 0)
    assert router.choose(plain(hashes=(1, 2)), up) == 0
    up[0].in_flight = 50

    assert router.choose(plain(hashes=(1, 2, 3)), up) == 0
    assert router.choose(plain(hashes=(1, 9)), up) == 1
    assert router.choose(plain(hashes=(1, 2, 3, 4)), up[1:]) == 0
    assert up[1:][router.choose(plain(hashes=(1, 2, 3, 4, 5)), up[1:])].number == 1


def test_a_session_is_known_by_whole_blocks_and_gone_on_from_once() -> None:
    """A prompt of 40 tokens has two whole blocks of 16; its third hash is of what the next turn will change."""
    router, up = SessionSticky(16), replicas(0, 0)
    assert router.choose(plain(hashes=(1, 2, 31), prompt=40), up) == 0
    up[0].in_flight = 5

    assert router.choose(plain(hashes=(1, 2, 32, 4), prompt=64), up) == 0
    assert router.choose(plain(hashes=(1, 2, 33), prompt=40), up) == 1


def test_prefix_hash_keeps_prompts_that_begin_alike_together() -> None:
    """400 groups whose prompts share two blocks: each is at one replica, whatever the loads and whatever follows."""
    router, up = PrefixHash(), replicas(0, 50, 3)
    for group in range(400):
        chosen = {router.choose(plain(at, (2 * group, 2 * group + 1, 900 + at)), up) for at in range(3)}
        assert len(chosen) == 1


def test_prefix_hash_shares_by_weight() -> None:
    """20,000 prefixes over weights 1, 2 and 1: a quarter, a half, a quarter, within five deviations (0.0035)."""
    router, up = PrefixHash(1), [Seen(0), Seen(1, weight=2.0), Seen(2)]
    counts = Counter(router.choose(plain(0, (each,)), up) for each in range(20_000))

    for number, share in enumerate((0.25, 0.5, 0.25)):
        assert abs(counts[number] / 20_000 - share) < 5 * (0.5 * 0.5 / 20_000) ** 0.5


def test_prefix_hash_moves_only_what_was_on_the_replica_that_went() -> None:
    """Without replica 1 its prefixes go to others; no other prefix moves (Thaler and Ravishankar 1998)."""
    router, up = PrefixHash(1), replicas(0, 0, 0)
    left = [up[0], up[2]]
    for each in range(300):
        request = plain(0, (each,))
        before = up[router.choose(request, up)].number
        after = left[router.choose(request, left)].number
        assert before in (after, 1)
