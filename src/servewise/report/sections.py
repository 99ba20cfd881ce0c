"""Answers in order, each under its name: what every kind of report walks through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from servewise.answer import Answer
from servewise.caveats import Caveat, unique
from servewise.errors import InputError
from servewise.report.document import answer_from
from servewise.report.reading import clean, text

Answers = Answer | Sequence[Answer] | Mapping[str, Answer]

_TITLES = {
    "size": "What fits",
    "steptime": "Time of one step",
    "simulate": "Latency under load",
    "fleet": "Several replicas",
    "calibrate": "What runs tell of a server",
    "loop": "Predicted and measured",
    "catalogue": "What ships by name",
    "demo": "How to serve it",
    "probe-quantise": "Fewer bits on a real model",
    "probe-speculate": "Speculation on a real model",
    "bench": "Measured latency",
    "bench-quality": "Two builds, the same prompts",
    "beside": "Side by side",
    "experiment": "A small model on real servers",
    "speculate": "Speculative decoding",
    "prefix": "Prefix reuse",
    "plan": "The plan",
    "study": "The study again",
    "compare": "Two runs compared",
    "probe-kv": "The KV cache on a real model",
    "probe-ops": "What this machine reaches",
    "probe-policies": "Batching policies, measured and predicted",
    "self-test": "The load client's own error",
}


@dataclass(frozen=True, slots=True)
class Section:
    """One answer under a title."""

    title: str
    answer: Answer


def sections_of(answers: Answers) -> tuple[Section, ...]:
    """The sections of what a report was given; an answer made of answers (``demo``) is taken apart."""
    return _distinct(_found(answers))


def _found(answers: Answers) -> tuple[Section, ...]:
    if isinstance(answers, Answer):
        return _parts(answers) or (Section(_title(answers), answers),)
    if isinstance(answers, Mapping):
        return tuple(each for name, answer in answers.items() for each in _named(str(name), answer))
    return tuple(each for answer in answers for each in _found(answer))


def _distinct(sections: tuple[Section, ...]) -> tuple[Section, ...]:
    """The sections with titles that tell them apart: by model and hardware, then by number."""
    titles = Counter(section.title for section in sections)
    named = [replace(section, title=_longer(section)) if titles[section.title] > 1 else section for section in sections]
    seen: Counter[str] = Counter()
    for place, section in enumerate(named):
        seen[section.title] += 1
        if seen[section.title] > 1:
            named[place] = replace(section, title=f"{section.title} ({seen[section.title]})")
    return tuple(named)


def _longer(section: Section) -> str:
    conditions = section.answer.conditions
    return clean(f"{section.title}: {conditions.model} on {conditions.hardware}")


def caveats_of(sections: Iterable[Section]) -> tuple[Caveat, ...]:
    """Every section's caveats, each once."""
    return unique(tuple(caveat for section in sections for caveat in section.answer.caveats))


def title_of(answer: Answer) -> str:
    """The title of a report of one answer: what it is about, and of which model."""
    title, model = _title(answer), answer.conditions.model
    return clean(f"{title}: {model}" if model else title)


def _title(answer: Answer) -> str:
    return _TITLES.get(answer.command, answer.command[:1].upper() + answer.command[1:])


def _named(name: str, answer: Answer) -> tuple[Section, ...]:
    title = _TITLES.get(name) or text(name.replace("_", " "), answer.command)
    return _parts(answer) or (Section(title[:1].upper() + title[1:], answer),)


def _parts(answer: Answer) -> tuple[Section, ...]:
    """The answers within an answer's result, where there are any; caveats of its own alone go to the first."""
    found = answer.result.get("sections", answer.result)
    if not isinstance(found, Mapping):
        return ()
    named = {str(name): _answer(value) for name, value in found.items()}
    parts = [each for name, inner in named.items() if inner is not None for each in _named(name, inner)]
    own = [caveat for caveat in answer.caveats if not any(caveat in part.answer.caveats for part in parts)]
    if parts and own:
        first = parts[0].answer
        merged = replace(first, caveats=unique((*own, *first.caveats)))
        parts[0] = Section(parts[0].title, merged)
    return tuple(parts)


def _answer(value: object) -> Answer | None:
    if isinstance(value, Answer):
        return value
    if not isinstance(value, Mapping) or "schema" not in value:
        return None
    try:
        return answer_from(value)
    except InputError:
        return None
