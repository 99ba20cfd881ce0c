"""A view: a form for one question, and the command line that its values write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from servewise.app.field import Field
from servewise.app.line import Line
from servewise.errors import InputError

Values = Mapping[str, str]
Files = Callable[[str, str], str]  # a name and a text, kept as a file: its reference


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """``name`` is its place in the address, ``command`` what answers it.

    ``slow``: it runs in a process of its own, with progress; ``auto`` False: only when asked to. ``hides`` are keys of
    the result that are not drawn (another view shows them). ``rewrite`` turns values into those of options where they
    are more than one to one (sliders that make a workload file). ``beside`` is a field of uploaded answers, drawn
    beneath this one. ``folds``: a group that is folded until that field has that value, which touching it gives.
    """

    name: str
    title: str
    question: str
    command: str
    fields: tuple[Field, ...]
    slow: bool = False
    auto: bool = True
    hides: tuple[str, ...] = ()
    beside: str = ""
    folds: tuple[str, str, str] = ("", "", "")
    rewrite: Callable[[dict[str, str], Files], dict[str, str]] | None = None

    @property
    def by_name(self) -> dict[str, Field]:
        """Its fields by name."""
        return {field.name: field for field in self.fields}

    def line(self, values: Values, files: Files) -> Line:
        """The command line of ``values``; InputError where one cannot stand there."""
        checked = {field.name: field.checked(values.get(field.name, field.default).strip()) for field in self.fields}
        for field in self.fields:
            if field.argument and not checked[field.name]:
                raise InputError("nothing is given", where=field.name, hint="name one, or upload a file")
        given = self.rewrite(checked, files) if self.rewrite else checked
        return Line(self.command, tuple(self._arguments(given)), tuple(self._options(given)))

    def _arguments(self, given: Values) -> Iterator[str]:
        for field in self.fields:
            if field.argument and given.get(field.name):
                yield from filter(None, given[field.name].split(",")) if field.kind == "files" else [given[field.name]]

    def _options(self, given: Values) -> Iterator[tuple[str, str | None]]:
        joined: dict[str, list[str]] = {}
        for field in self.fields:
            value = given.get(field.name, "")
            if not field.option or not value:
                continue
            if field.kind == "flag":
                yield field.option, None
            else:
                joined.setdefault(field.option, []).append(field.form.format(value))
        yield from ((option, ", ".join(values)) for option, values in joined.items())


def address(view: View, values: Values) -> dict[str, str]:
    """What must stand in the address: the values that are not the form's own."""
    return {
        field.name: values[field.name]
        for field in view.fields
        if field.name in values and values[field.name] != field.default
    }


def carried(view: View, values: Values) -> dict[str, str]:
    """What another view takes over: the values of fields that it has too."""
    return address(view, {name: value for name, value in values.items() if name in view.by_name})
