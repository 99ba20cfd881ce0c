"""Whether a request can ever run: one clear line where it cannot."""

from __future__ import annotations

from collections.abc import Sequence

from servewise.engine.config import DecoderConfig
from servewise.engine.sampling_settings import SamplingSettings
from servewise.errors import InputError


def output_limit(prompt_tokens: int, settings: SamplingSettings, config: DecoderConfig) -> int:
    """Tokens of the reply at most: ``max_tokens``, or what is left of the context; 0: the prompt fills it."""
    return max(0, min(settings.max_tokens, config.max_context_tokens - prompt_tokens))


def refusal(
    prompt: Sequence[int], settings: SamplingSettings, config: DecoderConfig, *, has_tokenizer: bool
) -> InputError | None:
    """Why a request can not run on the model; None: it can."""
    if not prompt:
        return InputError("the prompt is empty", hint="give at least one token")
    if min(prompt) < 0 or max(prompt) >= config.vocabulary:
        what = f"the prompt holds a token outside the model's vocabulary of {config.vocabulary}"
        return InputError(what, hint="encode it with the tokenizer published with the model")
    if output_limit(len(prompt), settings, config) < 1:
        what = f"the prompt has {len(prompt)} tokens, the model's context {config.max_context_tokens}"
        return InputError(what, hint="shorten the prompt: the reply needs room for a token")
    if settings.stop and not has_tokenizer:
        return InputError("stop strings need a tokenizer", hint="give the engine the model's tokenizer")
    return None


def too_large(needed_tokens: int, pool_tokens: int) -> InputError:
    """The pool, empty, would not hold the request."""
    what = f"the request needs KV for {needed_tokens} tokens, the pool holds {pool_tokens}"
    return InputError(what, hint="lower max_tokens, shorten the prompt or give the engine more blocks")
