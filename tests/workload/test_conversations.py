"""Conversations: lengths that grow by what is said and answered, blocks named by what they hold, turns in time."""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servewise.errors import InputError
from servewise.techniques.reuse import count_reuse
from servewise.workload.arrivals import Constant, Poisson
from servewise.workload.conversations import Conversations
from servewise.workload.lengths import Fixed, Lengths, Lognormal, Uniform
from servewise.workload.load import load_workload
from servewise.workload.prefix import SharedPrefix
from servewise.workload.request import Request
from servewise.workload.thinking import Thinking
from servewise.workload.workload_file import read_workload


def plain(**more: object) -> Conversations:
    """Three turns of 40 said and 10 answered, a new conversation every 100 s."""
    given: dict[str, object] = {"turns": Fixed(3), "user_tokens": Fixed(40), "output_tokens": Fixed(10), "count": 60}
    return Conversations(**{**given, "arrivals": Constant(0.01), **more})  # type: ignore[arg-type]


def by_conversation(workload: Conversations) -> list[list[Request]]:
    """The turns of each conversation."""
    return [[talk.turn(place, 0.0) for place in range(len(talk))] for talk in workload.conversations(0)]


def test_a_prompt_is_all_before_and_what_is_said_now() -> None:
    """40; 40 + 10 + 40; 90 + 10 + 40."""
    assert [[each.prompt_tokens for each in turns] for turns in by_conversation(plain())] == [[40, 90, 140]] * 20


def test_hashes_go_on_through_the_answer() -> None:
    """50, 100 and 150 tokens are 3, 6 and 9 whole blocks of 16, and each turn's begin with those of the one before."""
    first, second, third = by_conversation(plain())[0]
    assert [len(each.block_hashes) for each in (first, second, third)] == [3, 6, 9]
    assert all(each.answer_hashed for each in (first, second, third))
    assert third.block_hashes[:6] == second.block_hashes
    assert second.block_hashes[:3] == first.block_hashes


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 200), st.integers(1, 4), st.floats(0, 1), st.integers(1, 40), st.integers(0, 2**32))
def test_equal_hash_equal_prefix(more: int, groups: int, share: float, block: int, seed: int) -> None:
    """Built as text (every token a name of its own, a system prompt's by its group), blocks are equal as texts are."""
    tokens = block + more
    prefix = SharedPrefix(groups, tokens, share, block)
    lengths = {"turns": Uniform(1, 4), "user_tokens": Uniform(1, 30), "output_tokens": Uniform(1, 30)}
    workload = plain(**lengths, prefix=prefix, count=40)
    texts: dict[int, tuple[object, ...]] = {}
    names: dict[tuple[object, ...], int] = {}
    for talk in workload.conversations(seed):
        group = prefix.hashes.index(talk.shared)
        said: list[object] = [("system", group, at) for at in range(tokens)] if group < groups else []
        for place in range(len(talk)):
            turn = talk.turn(place, 0.0)
            whole = turn.prompt_tokens + turn.output_tokens
            said += [(talk.first_serial, at) for at in range(len(said), whole)]
            assert len(turn.block_hashes) == whole // block
            for depth, key in enumerate(turn.block_hashes, 1):
                text = tuple(said[: depth * block])
                assert texts.setdefault(key, text) == text
                assert names.setdefault(text, key) == key


def test_an_endless_cache_finds_all_whole_blocks_of_the_turn_before() -> None:
    """Of 20 conversations: 0, 48 and 96 tokens of 40, 90 and 140: 144 of 270."""
    found = count_reuse(plain().requests(0), 16)
    assert found.reusable_tokens == 20 * (48 + 96)
    assert found.hit_rate == pytest.approx(144 / 270)


def test_an_opening_and_a_system_prompt_come_once() -> None:
    """100 to open with and 32 of the system's: 172 in the first turn, 222 in the second."""
    turns = by_conversation(plain(opening_tokens=Fixed(100), prefix=SharedPrefix(1, 32)))[1]
    assert [each.prompt_tokens for each in turns] == [172, 222, 272]
    assert turns[0].block_hashes[:2] == (0, 1)


def test_a_conversation_ends_before_it_would_outgrow_the_context() -> None:
    """Two turns take 100 tokens with their answers, the third 150: a context of 149 ends it, one of 150 does not."""
    assert {len(turns) for turns in by_conversation(plain(max_context_tokens=149, count=40))} == {2}
    assert {len(turns) for turns in by_conversation(plain(max_context_tokens=150))} == {3}
    assert all(talk.outgrown for talk in plain(max_context_tokens=149, count=40).conversations(0))
    assert not any(talk.outgrown for talk in plain(max_context_tokens=150).conversations(0))


def test_no_conversation_at_all_is_refused() -> None:
    """A context that no first turn keeps within is said, not searched for ever."""
    with pytest.raises(InputError, match="no conversation's first turn"):
        next(plain(max_context_tokens=49).conversations(0))


def test_turns_come_in_order_of_time() -> None:
    """To a server that answers at once: an opening every 100 s, the second and third turn 150 s and 300 s later."""
    turns = list(plain(thinking=Thinking(150)).requests(0))
    assert [each.serial for each in turns[:6]] == [0, 3, 1, 6, 4, 2]  # at 400 s the lower serial first
    assert [each.arrival_s for each in turns[:6]] == [100, 200, 250, 300, 350, 400]
    assert all(one.arrival_s <= other.arrival_s for one, other in pairwise(turns))


def test_users_open_the_next_conversation_when_the_last_has_ended() -> None:
    """Two users who think 10 s: turns at 10, 20, 30 of the first conversations, then at 40 of the next ones."""
    turns = list(plain(arrivals=None, users=2, thinking=Thinking(10), count=8).requests(0))
    assert [(each.serial, each.arrival_s) for each in turns] == [
        (0, 10), (3, 10), (1, 20), (4, 20), (2, 30), (5, 30), (6, 40), (7, 50),
    ]  # fmt: skip


def test_the_rate_is_that_of_turns() -> None:
    """0.5 conversations a second of 3 turns are 1.5 requests a second; at another rate the same conversations come."""
    workload = plain(arrivals=Poisson(0.5))
    faster = workload.at_rate(6.0)
    assert workload.rate_per_s == 1.5
    assert faster.rate_per_s == pytest.approx(6.0)
    first, second = (list(each.conversations(3)) for each in (workload, faster))
    assert [each.prompts for each in first] == [each.prompts for each in second]
    assert [each.start_s for each in second] == pytest.approx([each.start_s / 4 for each in first])


def test_a_longer_run_begins_with_the_shorter_one() -> None:
    """A cut of the number of requests changes none of those before it."""
    lengths: dict[str, Lengths] = {"turns": Uniform(1, 9), "user_tokens": Lognormal(50, 1)}
    short, long = (list(plain(**lengths, count=count).conversations(1)) for count in (2_000, 30_000))
    assert sum(map(len, short)) == 2_000
    assert [each.prompts for each in short[:-1]] == [each.prompts for each in long[: len(short) - 1]]


def test_pauses_have_the_mean_and_the_spread_that_they_say() -> None:
    """100,000 pauses of mean 20 s and CV 1.5: both within 2%; without a CV all are the mean."""
    drawn = Thinking(20, 1.5).draw(np.random.default_rng(1), 100_000)
    assert drawn.mean() == pytest.approx(20, rel=0.02)
    assert drawn.std() / drawn.mean() == pytest.approx(1.5, rel=0.02)
    assert set(Thinking(20).draw(np.random.default_rng(1), 10)) == {20.0}


def test_a_session_counts_turns_after_it_has_settled() -> None:
    """Answered at once, ten turns count from 400 s on (twice two pauses of 100 s); those before come beside them."""
    source, times = plain(thinking=Thinking(100), count=10).session(0), []
    while source.next_s < float("inf"):
        turn = source.take()
        times.append(turn.arrival_s)
        source.ended(turn.serial, turn.arrival_s)
    assert source.settle_s == 400
    assert sum(each >= 400 for each in times) == 10
    assert times[:6] == [100, 200, 200, 300, 300, 300]


def test_after_settling_turns_come_at_the_rate_asked_for() -> None:
    """Poisson openings, 2 turns/s in all, pauses of 20 s: 20,000 turns take 10,000 s within 3%, from the first on."""
    source = plain(arrivals=Poisson(2 / 3), thinking=Thinking(20, 1), count=20_000).session(0)
    times = []
    while source.next_s < float("inf"):
        turn = source.take()
        source.ended(turn.serial, turn.arrival_s)
        times.append(turn.arrival_s)
    counted = [each - source.settle_s for each in times if each >= source.settle_s]
    assert counted[-1] == pytest.approx(10_000, rel=0.03)
    assert counted[2_000] == pytest.approx(1_000, rel=0.1)


def test_the_preset_is_vllms_multi_turn_file() -> None:
    """6 to 9 turns, 500 tokens of a common system prompt, about 1,000 to open with, 120-160 said, 80-120 answered."""
    workload = load_workload("chat-multiturn")
    assert isinstance(workload, Conversations)
    talks = list(workload.conversations(0))
    said = [talk.prompts[0] - 500 for talk in talks]
    assert {len(talk) for talk in talks[:-1]} == {6, 7, 8, 9}
    assert all(talk.shared == tuple(range(31)) for talk in talks)
    assert np.mean(said) == pytest.approx(1_140, rel=0.1)
    assert all(80 <= output <= 120 for talk in talks for output in talk.outputs)


FILE = """
requests = 50
[arrivals]
kind = "poisson"
rate_per_s = 0.5
[turns]
kind = "uniform"
low = 2
high = 5
[user_tokens]
kind = "fixed"
tokens = 64
[output_tokens]
kind = "lognormal"
median = 60
p95 = 200
"""


def read(folder: Path, text: str) -> object:
    """The workload that ``text`` describes."""
    path = folder / "w.toml"
    path.write_text(text)
    return read_workload(path)


def test_the_workload_file_of_conversations(tmp_path: Path) -> None:
    """Every key means what it says."""
    opening = '[opening_tokens]\nkind = "fixed"\ntokens = 900\n'
    more = "[thinking]\nmean_s = 30\ncv = 1\n[prefix]\ngroups = 2\ntokens = 64\n"
    found = read(tmp_path, "max_context_tokens = 8192\nsettle_s = 60\n" + FILE + opening + more)
    assert found == Conversations(
        turns=Uniform(2, 5),
        user_tokens=Fixed(64),
        output_tokens=Lognormal.from_percentile(60, 200),
        count=50,
        arrivals=Poisson(0.5),
        opening_tokens=Fixed(900),
        thinking=Thinking(30, 1),
        prefix=SharedPrefix(2, 64),
        max_context_tokens=8192,
        settle_s=60,
    )


def test_users_in_the_workload_file(tmp_path: Path) -> None:
    """Closed arrivals are users."""
    found = read(tmp_path, FILE.replace('kind = "poisson"\nrate_per_s = 0.5', 'kind = "closed"\nconcurrency = 8'))
    assert isinstance(found, Conversations)
    assert (found.users, found.arrivals) == (8, None)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("requests = 50", "", "requests"),
        ("requests = 50", "requests = 50\nduration_s = 9", "duration_s"),
        ('[turns]\nkind = "uniform"\nlow = 2\nhigh = 5\n', "", r"\[turns\]"),
        ("low = 2", "low = 0", "low must be"),
        ("rate_per_s = 0.5", "rate_per_s = 0", "rate"),
        ('kind = "poisson"\nrate_per_s = 0.5', 'kind = "closed"\nconcurrency = 8\nthink_s = 3', r"\[thinking\]"),
        ("requests = 50", "requests = 50\nmax_context_tokens = 2000000", "context"),
        ("requests = 50", "requests = 50\nsettle_s = -1", "settle"),
        ("[user_tokens]", "[thinking]\nmean_s = -1\n[user_tokens]", "think"),
        ("[user_tokens]", "[thinking]\nmean_s = 1\ncv = 0.001\n[user_tokens]", "constant"),
        ("[user_tokens]", "[thinking]\nspread = 1\n[user_tokens]", "spread"),
        ("[user_tokens]", '[prompt_tokens]\nkind = "fixed"\ntokens = 9\n[user_tokens]', "prompt_tokens"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, before: str, after: str, says: str) -> None:
    """One line that names the file and what is wrong."""
    with pytest.raises(InputError, match=says) as caught:
        read(tmp_path, FILE.replace(before, after))
    assert str(tmp_path) in str(caught.value)


def test_either_arrivals_or_users() -> None:
    """Neither and both are refused, and users have no rate to be scaled."""
    with pytest.raises(InputError, match="either"):
        plain(arrivals=None)
    with pytest.raises(InputError, match="either"):
        plain(users=3)
    with pytest.raises(InputError, match="no arrival rate"):
        plain(arrivals=None, users=3).at_rate(1.0)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(FILE) - 1), st.text('0123456789.=[]"e-\n', max_size=4), st.integers(0, 20))
def test_any_damage_to_a_file_of_conversations(
    tmp_path_factory: pytest.TempPathFactory, at: int, put: str, cut: int
) -> None:
    """A file with characters replaced anywhere is a workload whose turns can be made, or one InputError."""
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    path.write_text(FILE[:at] + put + FILE[at + cut :])
    try:
        found = read_workload(path)
        turns = list(islice(found.requests(0), 3)) if isinstance(found, Conversations) else []
    except InputError as error:
        refused, turns = str(error), []
    else:
        refused = ""
    assert "\n" not in refused
    assert all(turn.prompt_tokens >= 1 for turn in turns)
