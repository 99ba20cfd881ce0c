"""The draft that is asked for, as text, and the draft itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import torch

from servewise.engine.decoder.decoder import Decoder
from servewise.engine.quantised.grid import BITS, Grid
from servewise.engine.quantised.model import quantise
from servewise.engine.quantised.scheme import Scheme
from servewise.engine.speculative.cached_model import CachedModel
from servewise.engine.speculative.lane import Draft
from servewise.engine.speculative.model_draft import ModelDraft
from servewise.engine.speculative.ngram import NgramDraft
from servewise.errors import InputError

NGRAM, SELF, EXIT, MODEL = "ngram", "self", "exit", "model"
HINT = "ngram, ngram:MIN-MAX, self:BITS, exit:LAYERS, or a model"
DEFAULT_N = (2, 4)
PACKED_BITS = (8, 4)  # have a kernel in bf16 on CPU; other bits cost what the target costs
_NUMBERED = re.compile(r"(self|exit):(\d{1,6})")
_NGRAM = re.compile(r"ngram(?::(\d{1,3})-(\d{1,3}))?")


class DraftSpec(NamedTuple):
    """``kind`` with its numbers: n-gram lengths, bits, or layers. ``text`` is how it was asked for."""

    text: str
    kind: str
    numbers: tuple[int, ...] = ()


def parse_draft(text: str) -> DraftSpec:
    """The draft called ``text``; what is no keyword is a model. Raises InputError for a keyword without its number.

    >>> parse_draft("self:4").numbers, parse_draft("ngram").numbers
    ((4,), (2, 4))
    """
    text = text.strip()
    if match := _NGRAM.fullmatch(text):
        low, high = match.groups()
        return DraftSpec(text, NGRAM, (int(low), int(high)) if low else DEFAULT_N)
    if match := _NUMBERED.fullmatch(text):
        return DraftSpec(text, match[1], (int(match[2]),))
    if not text or text.split(":")[0] in (NGRAM, SELF, EXIT):
        raise InputError(f"cannot read {text[:60]!r}", where="draft", hint=HINT)
    return DraftSpec(text, MODEL)


def draft_model(spec: DraftSpec, target: Decoder, load: Callable[[str], Decoder]) -> Decoder | None:
    """The model that drafts; None where none does (n-gram). ``load`` reads another checkpoint.

    Raises InputError for bits or layers that cannot be, and for a model with another vocabulary.
    """
    if spec.kind == NGRAM:
        return None
    if spec.kind == SELF:
        return quantise(target, self_scheme(spec.numbers[0]))
    if spec.kind == EXIT:
        if not 1 <= spec.numbers[0] < target.config.layers:
            what = f"{spec.numbers[0]} layers of a model that has {target.config.layers}"
            raise InputError(what, where="draft", hint="fewer layers than the model's, at least one")
        return target.first_layers(spec.numbers[0])
    model = load(spec.text)
    if model.config.vocabulary != target.config.vocabulary:
        what = f"has a vocabulary of {model.config.vocabulary} tokens, the target one of {target.config.vocabulary}"
        raise InputError(what, where=spec.text, hint="draft and target must share their tokens")
    return model


def self_scheme(bits: int) -> Scheme:
    """Weights at ``bits``: a scale a channel at 8, asymmetric in groups of 32 below; packed where there is a kernel."""
    if bits not in BITS:
        raise InputError(f"{bits} bits", where="draft", hint=f"self:BITS with BITS one of {', '.join(map(str, BITS))}")
    if bits == 8:
        return Scheme(weights=Grid(bits=8, scales="bf16"), packed=True)
    return Scheme(weights=Grid(bits=bits, group=32, symmetric=False, scales="bf16"), packed=True)


def is_emulated(spec: DraftSpec, dtype: torch.dtype) -> bool:
    """Whether the draft has its bits' values but not their speed."""
    return spec.kind == SELF and (dtype != torch.bfloat16 or spec.numbers[0] not in PACKED_BITS)


def make_draft(spec: DraftSpec, model: Decoder | None, capacity_tokens: int) -> Draft:
    """A fresh draft with room for ``capacity_tokens``."""
    if model is None:
        return NgramDraft(*spec.numbers)
    return ModelDraft(spec.text, CachedModel(model, capacity_tokens, device=model.device))
