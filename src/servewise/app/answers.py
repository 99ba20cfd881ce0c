"""Answers by their command line: the last ones are kept, so that a view drawn anew, or exported, asks nothing twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from servewise.answer import Answer
from servewise.app.jobs import Ask, Job, Jobs
from servewise.app.uploads import Uploads
from servewise.app.view import View
from servewise.errors import InputError
from servewise.report.document import load_answer
from servewise.report.page import Page, page_of
from servewise.report.sections import sections_of

KEPT = 64
Argv = tuple[str, ...]


class Answers:
    """``ask`` answers a command line; ``preload`` are modules that it needs, imported before the first slow run."""

    def __init__(self, ask: Ask, preload: Sequence[str] = (), runs: Sequence[str] = ()) -> None:
        self.uploads = Uploads(runs)
        self.jobs = Jobs(ask, preload, self._keep)
        self._ask = ask
        self._kept: OrderedDict[Argv, Answer] = OrderedDict()
        self._pages: OrderedDict[tuple[str, str, Argv], Page] = OrderedDict()
        self._lock = threading.Lock()
        self._drawing = threading.Lock()  # the charts' library has one state for all threads

    def close(self) -> None:
        """End what runs, and take the files away."""
        self.jobs.close()
        self.uploads.close()

    def argv(self, view: View, values: Mapping[str, str]) -> Argv:
        """What runs for ``values``; InputError with the field where something cannot."""
        for field in view.fields:
            for value in filter(None, values.get(field.name, "").split(",")):
                self._present(field.name, value)
        return view.line(values, self.file).run(self.uploads.path)

    def file(self, name: str, text: str) -> str:
        """A file that a form writes."""
        return self.uploads.keep(name, text.encode())

    def kept(self, argv: Argv) -> Answer | None:
        """The answer of that line, if it is still known."""
        with self._lock:
            if argv in self._kept:
                self._kept.move_to_end(argv)
            return self._kept.get(argv)

    def now(self, argv: Argv) -> Answer:
        """The answer, asked here if it is not known."""
        found = self.kept(argv)
        if found is None:
            found = self._ask(argv, lambda _done, _total: None)
            self._keep(argv, found)
        return found

    def start(self, owner: str, argv: Argv, about: object) -> Job:
        """Ask in a process of its own."""
        return self.jobs.start(owner, argv, about)

    def page(self, view: View, values: Mapping[str, str], answer: Answer) -> Page:
        """The answer drawn, and those beside it: headline, caveats, figures, tables, conditions."""
        beside = values.get(view.beside, "") if view.beside else ""
        key = (view.name, beside, self.argv(view, values))
        with self._drawing:
            if key not in self._pages:
                several = [
                    shown(view, answer),
                    *(self._uploaded(view, each) for each in filter(None, beside.split(","))),
                ]
                self._pages[key] = page_of(sections_of(several), title=view.title)
                while len(self._pages) > KEPT:
                    self._pages.popitem(last=False)
            return self._pages[key]

    def _uploaded(self, view: View, reference: str) -> Answer:
        try:
            return load_answer(self.uploads.path(reference))
        except InputError as error:
            raise InputError(error.what, where=view.beside, hint=error.hint) from error

    def _present(self, name: str, value: str) -> None:
        try:
            self.uploads.path(value)
        except InputError as error:
            raise InputError(error.what, where=name, hint=error.hint) from error

    def _keep(self, argv: Argv, answer: Answer) -> None:
        with self._lock:
            self._kept[argv] = answer
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)


def shown(view: View, answer: Answer) -> Answer:
    """The answer without what another view shows."""
    return replace(answer, result={key: value for key, value in answer.result.items() if key not in view.hides})
