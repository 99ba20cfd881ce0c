"""The table of ``plan`` that says how its recommendation is started."""

from __future__ import annotations

import shlex

from servewise.report.reading import Row, items, mapping, text
from servewise.report.table import Column, Table, build


def launch(result: Row) -> Table:
    """One row an engine: its command; files and notes are in the JSON and with --emit."""
    found = mapping(result.get("launch"))
    lines = [{"engine": name, "argv": mapping(found[name]).get("argv")} for name in found if name != "kubernetes"]
    columns = (
        Column("Engine", lambda row: text(row.get("engine")), prose=True),
        Column("Command", lambda row: shlex.join(map(str, items(row.get("argv")))), prose=True),
    )
    more = "--emit kubernetes prints a manifest, --emit sglang,trtllm,llamacpp other engines' commands."
    return build("Start it", columns, lines, note=more)
