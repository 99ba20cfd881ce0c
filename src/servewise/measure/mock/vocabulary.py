"""Words that are tokens: 256 of them, so that a byte names one, and the same prompt always gets the same text."""

from __future__ import annotations

from hashlib import shake_128

_HEADS, _TAILS = (
    "bdfghjklmnprstvz",
    ("a", "e", "i", "o", "u", "an", "en", "in", "on", "un", "ar", "er", "ir", "or", "ur", "ai"),
)
WORDS = tuple(f" {head}{tail}{head}o" for head in _HEADS for tail in _TAILS)


def drawn(prompt: bytes, seed: int, tokens: int) -> bytes:
    """The ``tokens`` words that follow ``prompt``, by number; another seed gives others."""
    return shake_128(b"%d\n%s" % (seed, prompt)).digest(tokens)


def changed(words: bytes, prompt: bytes, seed: int, share: float) -> bytes:
    """``words`` as a quantised build says them: each is its runner-up with probability ``share``, on its own."""
    if share <= 0:
        return words
    coins = shake_128(b"quantised %d\n%s" % (seed, prompt)).digest(2 * len(words))
    limit = share * 65536
    return bytes(
        runner_up(word) if 256 * coins[2 * place] + coins[2 * place + 1] < limit else word
        for place, word in enumerate(words)
    )


def runner_up(word: int) -> int:
    """The second candidate where ``word`` is the first, and the other way round."""
    return word ^ 1


def count(text: str, tokens_per_word: float) -> int:
    """Tokens in a text: its words, times ``tokens_per_word``."""
    return round(len(text.split()) * tokens_per_word)
