"""The mutants of a file: mutmut's operators on each expression and statement inside a function.

Left out: docstrings and annotations, decorators and defaults of parameters, constants of modules and classes (they run
when the module is imported), and the words of errors that are raised.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from functools import cached_property
from pathlib import Path
from typing import cast

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators


@dataclass(frozen=True)
class Mutant:
    """The ``number``-th mutant of ``path`` (in its room's folder), in the function ``name`` that begins at a line."""

    path: str
    number: int
    name: str
    line: int
    node: cst.CSTNode
    changed: cst.CSTNode

    @property
    def key(self) -> str:
        """How results name it."""
        return f"{self.path}:{self.line} {self.name} #{self.number}"


class MutatedFile:
    """A source file and its mutants."""

    def __init__(self, home: Path, path: str) -> None:
        self.path, self.source = path, (home / path).read_text()
        self._wrapper = MetadataWrapper(cst.parse_module(self.source))

    @cached_property
    def mutants(self) -> list[Mutant]:
        """All of them, in order of place."""
        finder = _Finder()
        self._wrapper.visit(finder)
        return [Mutant(self.path, at, *found) for at, found in enumerate(finder.found)]

    def code(self, mutant: Mutant) -> str:
        """The file with ``mutant`` in it."""
        return cast("cst.Module", self._wrapper.module.deep_replace(mutant.node, mutant.changed)).code

    def change(self, mutant: Mutant) -> tuple[str, str]:
        """The lines that differ: as they stand, and as they would."""
        pairs = list(unified_diff(self.source.splitlines(), self.code(mutant).splitlines(), n=0, lineterm=""))[2:]
        before, after = (" ".join(line[1:].strip() for line in pairs if line[0] == sign) for sign in "-+")
        return before, after

    def compiles(self, mutant: Mutant) -> bool:
        """Whether it is Python at all."""
        try:
            ast.parse(self.code(mutant))
        except SyntaxError:
            return False
        return True


Found = tuple[str, int, cst.CSTNode, cst.CSTNode]


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Found] = []
        self._names: list[str] = []
        self._functions = 0
        self._quiet = 0  # inside what is left out
        self._raising = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Annotation | cst.Decorator | cst.Parameters | cst.ImportFrom | cst.Import):
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._names.append(node.name.value)
            self._functions += isinstance(node, cst.FunctionDef)
        self._raising += isinstance(node, cst.Raise)
        if self._functions:
            self.found += self._mutated(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self._names.pop()
            self._functions -= isinstance(original_node, cst.FunctionDef)
        self._raising -= isinstance(original_node, cst.Raise)

    def _mutated(self, node: cst.CSTNode) -> Iterator[Found]:
        if self._raising and isinstance(node, cst.BaseString):
            return
        place = self.get_metadata(PositionProvider, node, None)
        for kind, operator in mutation_operators:
            if isinstance(node, kind):
                for changed in operator(node):
                    line = place.start.line if place is not None else 0
                    yield ".".join(self._names), line, node, changed
