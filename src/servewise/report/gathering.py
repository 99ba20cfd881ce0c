"""Answers and runs of several sources as one report: runs side by side, two of them compared, the rest after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from servewise.answer import Answer
from servewise.errors import InputError
from servewise.report.document import load_answer
from servewise.report.html import write_html
from servewise.report.markdown import render_markdown
from servewise.report.sections import Answers, sections_of

RUNS = ("bench", "simulate")
BENCH = "bench.json"  # the answer that bench keeps beside its runs
Tell = Callable[[str], None]


def report(*sources: str | Path | Answer, output: str | Path | None = None, title: str = "servewise report") -> Answer:
    """The ``sources`` in one report: answers, their JSON documents, run directories, result files of other clients.

    ``output``: an .html, .md or .json file. The answer holds all of them as its sections.
    """
    from servewise.atomic import replace_whole

    answers = gathered(sources)
    target = None if output is None else Path(output)
    if target is None:
        return whole(answers)
    if target.suffix.lower() in (".html", ".htm"):
        write_html(target, answers, title=title)
    else:
        text = render_markdown(answers, title=title) if target.suffix.lower() == ".md" else whole(answers).dumps()
        replace_whole(target.resolve(), f"{text.rstrip()}\n".encode())
    return whole(answers)


def gathered(sources: Sequence[str | Path | Answer], tell: Tell | None = None) -> Answers:
    """The answers of ``sources``; before them, where several are runs, all runs side by side and two of them compared.

    ``tell`` hears what could not be drawn or compared.
    """
    tell = tell or (lambda _line: None)
    named = {_name(source, place): source for place, source in enumerate(sources)}
    return _sections({name: _read(source, tell) for name, source in named.items()}, named, tell)


def whole(answers: Answers) -> Answer:
    """One document: the answer itself where there is one, else all of them as its sections."""
    from servewise.ask.differing import side_by_side as all_conditions

    sections = sections_of(answers)
    if len(sections) == 1:
        return sections[0].answer
    conditions = all_conditions({each.title: each.answer.conditions for each in sections})
    return Answer("report", conditions, {"sections": {each.title: each.answer.to_json() for each in sections}})


def _name(source: str | Path | Answer, place: int) -> str:
    return f"answer {place + 1}" if isinstance(source, Answer) else str(source)


def _read(source: str | Path | Answer, tell: Tell) -> Answer:
    from servewise.ask.measured import measured_answer, with_detail
    from servewise.ask.run import run_answer
    from servewise.ask.runs import conditions_in

    if isinstance(source, Answer):
        return source
    path = Path(source)
    if (path / BENCH).is_file():
        answer = load_answer(path / BENCH)
        try:
            return with_detail(answer, conditions_in(path))
        except InputError as error:
            tell(f"drawn without its runs: {error}")
            return answer
    if path.is_dir():
        return run_answer(path)
    try:
        return load_answer(path)
    except InputError as error:
        try:
            return measured_answer(path)
        except InputError:
            raise error from None


def _sections(answers: Mapping[str, Answer], sources: Mapping[str, str | Path | Answer], tell: Tell) -> Answers:
    """Sections by name where some stand side by side, else the answers as they came."""
    kinds = dict.fromkeys(answer.command for answer in answers.values())
    groups = {kind: {name: each for name, each in answers.items() if each.command == kind} for kind in kinds}
    runs = {name: answer for name, answer in answers.items() if answer.command in RUNS}
    first = _runs_beside(runs, sources, tell) if len(runs) > 1 else {}
    for kind, group in groups.items():
        if len(group) > 1 and kind not in RUNS:
            first |= _beside(kind, group)
    if not first:
        return list(answers.values())
    return first | dict(zip(_short(list(answers)), answers.values(), strict=True))


def _beside(kind: str, group: Mapping[str, Answer]) -> dict[str, Answer]:
    from servewise.ask.beside import beside

    found = beside(dict(zip(_short(list(group)), group.values(), strict=True)))
    return {} if found is None else {f"{kind} side by side": found}


def _runs_beside(
    runs: Mapping[str, Answer], sources: Mapping[str, str | Path | Answer], tell: Tell
) -> dict[str, Answer]:
    """Two runs compared request by request where they can be, else by their ratios; then the charts of all runs."""
    from servewise.ask.compare import compare
    from servewise.ask.measured import side_by_side

    every = {"side by side": side_by_side(dict(zip(_short(list(runs)), runs.values(), strict=True)))}
    if len(runs) == 2 and all(_holds_requests(sources[name]) for name in runs):
        try:
            return {"compare": compare(*runs)} | every
        except InputError as error:
            tell(f"not compared: {error}")
    return (_beside("metrics", runs) if len({answer.command for answer in runs.values()}) == 1 else {}) | every


def _holds_requests(source: str | Path | Answer) -> bool:
    """Whether the source may hold requests: an answer, in memory or as a document, holds none."""
    if isinstance(source, Answer):
        return False
    try:
        load_answer(source)
    except InputError:
        return True
    return False


def _short(sources: Sequence[str]) -> list[str]:
    """The sources' last names, or the sources themselves where those are the same."""
    short = [Path(source).stem or source for source in sources]
    return short if len(set(short)) == len(short) else list(sources)
