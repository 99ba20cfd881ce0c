"""YAML with places: values as plain Python, and where each key and item stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from servewise.check.finding import Place

DEEPEST = 60
MOST_NODES = 50_000
MOST_CHARACTERS = 1_000_000
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same nodes and marks, ten times as fast


@dataclass(frozen=True, slots=True)
class Tree:
    """A node: its value, where it begins, and its children by key or index."""

    value: Any
    at: Place
    children: dict[Any, Tree] = field(default_factory=dict)
    key_places: dict[Any, Place] = field(default_factory=dict)

    def place(self, key: Any) -> Place:
        """Where ``key`` stands."""
        return self.key_places.get(key, self.at)

    def child(self, *keys: Any) -> Tree | None:
        """The node below by that path."""
        found: Tree | None = self
        for key in keys:
            found = found.children.get(key) if found is not None else None
        return found

    def get(self, *keys: Any) -> Any:
        """The value below by that path, None where there is none."""
        found = self.child(*keys)
        return None if found is None else found.value

    def items(self, *keys: Any) -> Iterator[Tree]:
        """The items of the list below by that path."""
        found = self.child(*keys)
        if found is not None and isinstance(found.value, list):
            yield from found.children.values()


def yaml_trees(text: str) -> tuple[Tree, ...]:
    """The documents of ``text``; none where it is not YAML or too deep, never an exception."""
    try:
        nodes = list(yaml.compose_all(text[:MOST_CHARACTERS], Loader=LOADER))
        return tuple(_Builder().tree(node, 0) for node in nodes if node is not None)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError, TypeError, KeyError):
        return ()


class _Builder:
    """Each anchor's node is built once a use, up to ``MOST_NODES`` in all, so that no bomb of aliases goes off."""

    def __init__(self) -> None:
        self._made = 0

    def tree(self, node: yaml.Node, depth: int) -> Tree:
        self._made += 1
        if depth > DEEPEST or self._made > MOST_NODES:
            raise ValueError("too deep or too large")
        at = Place(node.start_mark.line + 1, node.start_mark.column + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at, depth)
        if isinstance(node, yaml.SequenceNode):
            items = [self.tree(each, depth + 1) for each in node.value]
            return Tree([each.value for each in items], at, dict(enumerate(items)))
        return Tree(_scalar(node), at)

    def _mapping(self, node: yaml.MappingNode, at: Place, depth: int) -> Tree:
        children, places = {}, {}
        for key, value in node.value:
            name = _scalar(key) if isinstance(key, yaml.ScalarNode) else None
            if name is None or isinstance(name, (list, dict)):
                name = getattr(key, "value", None) if isinstance(key, yaml.ScalarNode) else "?"
            children[name] = self.tree(value, depth + 1)
            places[name] = Place(key.start_mark.line + 1, key.start_mark.column + 1)
        return Tree({name: each.value for name, each in children.items()}, at, children, places)


def _scalar(node: yaml.Node) -> Any:
    """The value that YAML's own rules give it; the text where they fail."""
    constructor = yaml.SafeLoader("")
    try:
        found = constructor.construct_object(node, deep=True)
    except (yaml.YAMLError, ValueError, OverflowError):
        found = node.value
    return found if found is None or isinstance(found, (str, int, float, bool)) else str(node.value)


def block_offset(text: str, place: Place) -> bool:
    """Whether the scalar at ``place`` is a block (``|`` or ``>``), whose text begins on the next line."""
    lines = text.splitlines()
    line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    return line[place.column - 1 : place.column] in ("|", ">")
