"""Some rows of the records."""

from __future__ import annotations

from tests.records import made

from servewise.records.selection import joined, selected


def test_rows_keep_all_that_is_theirs() -> None:
    """The last and the first row, in that order: every column, token times and the error follow."""
    found = selected(made.measured(), [2, 0])
    assert list(found.id) == [2, 0]
    assert list(found.prompt_tokens) == [30, 10]
    assert found.errors == {0: 'connection reset, "quoted", µ'}
    assert found.token_times is not None
    assert (list(found.token_times.offsets), list(found.token_times.times)) == ([0, 0, 4], [0.25, 0.5, 0.5, 1.0])


def test_no_rows_are_empty_records() -> None:
    """Nothing chosen is a record of nothing, not an error."""
    found = selected(made.requests(), [])
    assert (len(found), found.token_times, found.errors) == (0, None, {})


def test_parts_joined_are_one_after_the_other() -> None:
    """Three rows and the last of them again: ids, the error's place and the token times are where they belong."""
    one = made.measured()
    found = joined([one, selected(one, [2, 1])])
    assert list(found.id) == [0, 1, 2, 2, 1]
    assert sorted(found.errors) == [2, 3]
    assert found.token_times is not None
    assert list(found.token_times.offsets) == [0, 4, 5, 5, 5, 6]
    assert found.token_times.times[5] == 0.75


def test_token_times_of_some_parts_are_token_times_of_none() -> None:
    """A simulated part knows no token times: the whole does not either."""
    assert joined([made.measured(), made.requests()]).token_times is None
