"""What an answer says of the runs that it kept: its caveats, added to the header of each that is whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from servewise.atomic import replace_whole
from servewise.caveats import Caveat
from servewise.records.placing import unwritable
from servewise.records.run_directory import HEADER, read_header
from servewise.records.text import text_of


def note_caveats(directories: Iterable[Path], caveats: Sequence[Caveat]) -> None:
    """Add ``caveats`` to the runs in ``directories``, each once; a run that is not whole is left as it is.

    An answer's caveats are known after its runs (whether a queue settled, how far a load lies outside of what was
    measured); who opens the run alone must read them too. Raises InputError where a header cannot be written.
    """
    for directory in directories:
        header = read_header(directory / HEADER)
        new = [each.to_json() for each in caveats if each.to_json() not in header["caveats"]]
        if "partial" in header or not new:
            continue
        try:
            replace_whole(directory / HEADER, text_of(header | {"caveats": new + header["caveats"]}))
        except OSError as error:
            raise unwritable(directory, error, "the run in it is whole") from error
