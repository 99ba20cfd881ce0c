"""Speculative decoding: acceptance, batch, draft length, losslessness."""

from __future__ import annotations

from collections.abc import Iterator

from servewise.check.engines.settings import Settings
from servewise.check.finding import Finding, found
from servewise.techniques.speculation import tokens_per_verification

MOST_SEQUENCES = 64  # at once, stated; losses are reported from 20 to 32 streams on
LEAST_COSTLY = 3  # draft tokens; one or two of a model's own heads pay at large batches too (TensorRT-LLM's configs)
LONG_DRAFT = 8
EXAMPLE_ACCEPTANCE = 0.7
OWN_LENGTH = ("ngram", "suffix", "dflash", "dspark", "lookahead")  # drafts whose length is not carried token by token


def speculation(settings: Settings) -> Iterator[Finding]:
    """The mistakes of speculation in one launch."""
    asked = settings.speculation
    if asked is None:
        return
    tokens, place = asked.draft_tokens, asked.given.at
    length = f"{tokens} draft tokens" if tokens else "A draft length"
    if tokens and tokens > 0:
        gain = tokens_per_verification(EXAMPLE_ACCEPTANCE, min(tokens, 100))
        lone = tokens_per_verification(0.4, min(tokens, 100))
        why = (
            f"{length}, no acceptance: they make {gain:.2g} tokens a verification if {EXAMPLE_ACCEPTANCE:.0%} are "
            f"accepted, {lone:.2g} if 40% are."
        )
    else:
        why = f"{length} chosen without an acceptance."
    yield found("speculation-unmeasured", place, why, draft_tokens=tokens)
    sequences = settings.whole("sequences")
    if sequences and sequences > MOST_SEQUENCES and (tokens or LEAST_COSTLY) >= LEAST_COSTLY:
        stated = settings.given("sequences")
        why = f"Up to {sequences} sequences at once each verify {(tokens or 1) + 1} tokens a step."
        yield found("speculation-at-large-batch", stated.at if stated else place, why, sequences=sequences)
    if tokens and tokens > LONG_DRAFT and not any(name in asked.method for name in OWN_LENGTH):
        last = 0.8**tokens
        why = f"At an acceptance of 0.8 the last of {tokens} draft tokens is kept {last:.0%} of the time."
        yield found("speculation-too-long", place, why, kept_share=last)
    if asked.lossy:
        yield found("speculation-lossy", place)
