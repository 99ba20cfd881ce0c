"""YAML that is written here is what PyYAML reads back."""

from __future__ import annotations

from typing import Literal

import yaml
from hypothesis import given
from hypothesis import strategies as st

from servewise.plan.flags.yaml_text import yaml_text

SURROGATES: tuple[Literal["Cs"]] = ("Cs",)
TEXT = st.text(st.characters(exclude_categories=SURROGATES), max_size=12)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), TEXT)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(st.one_of(SCALARS, st.dictionaries(TEXT, inner, min_size=1, max_size=3)), max_size=3),
        st.dictionaries(TEXT, inner, max_size=3),
    ),
    max_leaves=10,
)


@given(st.dictionaries(TEXT, VALUES, min_size=1, max_size=4))
def test_what_is_written_is_read_back(table: dict[str, object]) -> None:
    """Mappings, lists of values or mappings, texts that look like numbers, words that YAML takes for booleans."""
    assert yaml.safe_load(yaml_text(table)) == table  # type: ignore[arg-type]
