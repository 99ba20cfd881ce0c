"""What came of draft tokens, by policy and rate: how many tokens a verification gave, and which drafts stood."""

from __future__ import annotations

from servewise.report.reading import Row, items, number, rows
from servewise.report.table import Column, Table, build
from servewise.report.tables.latency import policy
from servewise.report.wording import UNKNOWN, count, figure, percent


def drafts_table(result: Row) -> tuple[Table, ...]:
    """One row a run whose sequences speculated; no table where none did."""
    found = [row for row in rows(result, "rows") if number(row.get("tokens_per_verification")) is not None]
    if not found:
        return ()
    columns = (
        Column("Policy", policy, prose=True),
        Column("Rate/step" if result.get("unit_step") is True else "Rate/s", lambda row: figure(row.get("rate_per_s"))),
        Column("Tokens/verification", lambda row: figure(row.get("tokens_per_verification"))),
        Column("Stood, by position", _by_position),
        Column("Undrafted", _undrafted),
        Column("Verifications", lambda row: count(row.get("verifications")), wide=True),
    )
    note = "Of the first seed. Undrafted tokens came without a draft: one a step."
    return (build("What speculation gave", columns, found, note=note, grouped=True),)


def _by_position(row: Row) -> str:
    return ", ".join(map(percent, items(row.get("acceptance_by_position")))) or UNKNOWN


def _undrafted(row: Row) -> str:
    """The share of decoded tokens that no verification gave."""
    plain, verified = number(row.get("undrafted_tokens")), number(row.get("verifications"))
    each = number(row.get("tokens_per_verification"))
    if plain is None or verified is None or each is None or not plain + verified:
        return UNKNOWN
    return percent(plain / (plain + verified * each))
