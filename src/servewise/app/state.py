"""What an address asks for: a view's values, and what in it is not understood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from servewise.app.field import LONGEST
from servewise.app.uploads import REFERENCE
from servewise.app.view import View, address, carried


@dataclass(frozen=True, slots=True)
class State:
    """``values`` by field, as the address or else the form has them; ``unknown`` are names that the view lacks."""

    view: View
    values: Mapping[str, str]
    unknown: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """The address's query for these values: what is not the form's own."""
        return urlencode(address(self.view, self.values))

    def files(self) -> Iterator[tuple[str, str]]:
        """Each field that holds an uploaded file, with the file's reference."""
        for name, value in self.values.items():
            yield from ((name, each) for each in value.split(",") if REFERENCE.fullmatch(each))

    def link(self, other: View) -> str:
        """The address of another view, with the values that it has too."""
        query = urlencode(carried(other, self.values))
        return f"/{other.name}" + (f"?{query}" if query else "")


def state_of(view: View, query: Iterable[tuple[str, str]]) -> State:
    """The state that the query's pairs describe; several values of one name are one with commas."""
    found: dict[str, list[str]] = {}
    for name, value in query:
        found.setdefault(name, []).append(value[: LONGEST + 1])
    fields = view.by_name
    given = {name: ",".join(values) for name, values in found.items() if name in fields}
    values = {name: given.get(name, field.default) for name, field in fields.items()}
    return State(view, values, tuple(name[:40] for name in found if name not in fields))
