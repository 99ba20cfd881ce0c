"""Values as people read them: three significant digits, the unit beside each, a dash for what is not known.

>>> seconds(0.0138), rate(803.2), percent(0.0634), dollars(0.4321), times(1.386)
('13.8 ms', '803', '6.3%', '$0.432', '1.39×')
"""

from __future__ import annotations

from servewise.report.reading import number
from servewise.units import format_bytes, format_count, format_seconds

UNKNOWN = "–"
_READABLE = 1e9  # beyond this a figure is written as a power of ten


def figure(value: object, *, digits: int = 3) -> str:
    """A plain number with at least ``digits`` digits: whole with commas where that is enough.

    >>> figure(13520), figure(0.03912), figure(None), figure(0)
    ('13,520', '0.0391', '–', '0')
    >>> figure(53.687, digits=4), figure(14559.2, digits=4)
    ('53.69', '14,559')
    """
    found = number(value)
    if found is None:
        return UNKNOWN
    if abs(found) >= 1e15 or (found and abs(found) < 1e-4):
        return f"{found:.2e}"
    if abs(found) >= 10 ** (digits - 1) or found == int(found):
        return f"{found:,.0f}"
    return f"{found:.{digits}g}"


def count(value: object) -> str:
    """A whole count: 13,520; large ones in thousands, millions or billions."""
    found = number(value)
    if found is None:
        return UNKNOWN
    return f"{found:,.0f}" if abs(found) < 1e10 else format_count(found) if abs(found) < 1e18 else f"{found:.2e}"


def seconds(value: object) -> str:
    """A duration: 950 µs, 13.8 ms, 2.41 s, 12 min."""
    found = number(value)
    if found is None:
        return UNKNOWN
    if found == 0:
        return "0 s"
    if abs(found) >= _READABLE or abs(found) < 1e-9:
        return f"{found:.2e} s"
    return format_seconds(found)


def steps(value: object) -> str:
    """A latency of a run whose every step costs one second: its number of steps."""
    return figure(value)


def size(value: object) -> str:
    """Bytes in binary units: 24.24 GiB."""
    found = number(value)
    if found is None:
        return UNKNOWN
    if found == 0:
        return "0 B"
    return format_bytes(found) if abs(found) < 1e18 else f"{found:.2e} B"


def rate(value: object) -> str:
    """A rate per second with three digits, the unit being in the heading.

    >>> rate(12.0), rate(803.2), rate(0.954), rate(0)
    ('12.0', '803', '0.954', '0')
    """
    found = number(value)
    return f"{found:#.3g}" if found is not None and 1e-4 <= abs(found) < 100 else figure(value)


def percent(value: object) -> str:
    """A share as a percentage.

    >>> percent(1.0), percent(0.6)
    ('100%', '60.0%')
    """
    found = number(value)
    if found is None:
        return UNKNOWN
    scaled = found * 100
    return f"{scaled:.0f}%" if scaled == 0 or abs(scaled) >= 99.95 else f"{scaled:.1f}%"


def dollars(value: object) -> str:
    """US dollars: cents above 10, three digits below."""
    found = number(value)
    if found is None:
        return UNKNOWN
    if abs(found) >= _READABLE:
        return f"${found:.2e}"
    if abs(found) >= 1:
        return f"${found:,.0f}" if abs(found) >= 1000 else f"${found:,.2f}"
    return f"${found:#.3g}" if abs(found) >= 1e-4 else f"${found:.3g}"


def times(value: object) -> str:
    """A ratio: 1.39×."""
    found = number(value)
    if found is None:
        return UNKNOWN
    return f"{found:.2f}×" if abs(found) < 1e6 else f"{found:.2e}×"


def within(value: object, ends: tuple[float, float] | None) -> str:
    """How far an interval reaches to either side of ``value``, in percent of it; nothing where it is not known.

    >>> within(28.5, (28.0, 29.0)), within(10.0, (9.0, 13.0)), within(10.0, (9.97, 10.02)), within(0.0, (0.0, 1.0))
    ('±2%', '-10/+30%', '±0.3%', '')
    >>> within(1.0, None), within(1.0, (0.0, 40.0))
    ('', '>±999%')
    """
    found = number(value)
    if ends is None or not found or not ends[0] <= found <= ends[1]:
        return ""
    below, above = ((found - ends[0]) / abs(found), (ends[1] - found) / abs(found))
    if max(below, above) >= 10:
        return ">±999%"
    even = max(below, above) <= max(1.5 * min(below, above), 0.01)
    return f"±{_share(max(below, above))}%" if even else f"-{_share(below)}/+{_share(above)}%"


def _share(found: float) -> str:
    """A share in percent with one digit at least, without its sign.

    >>> _share(0.123), _share(0.0042), _share(0.0), _share(0.00001)
    ('12', '0.4', '0', '0')
    """
    scaled = 100 * found
    return f"{scaled:.0f}" if scaled >= 0.95 or scaled < 0.05 else f"{scaled:.1f}"


_BY_UNIT = {
    "s": seconds,
    "bytes": size,
    "usd": dollars,
    "usd_per_million_output_tokens": lambda value: f"{dollars(value)} per M",
    "per_s": lambda value: f"{rate(value)}/s",
    "tokens_per_s": lambda value: f"{rate(value)} tokens/s",
    "tokens": lambda value: f"{count(value)} tokens",
    "share": percent,
    "ratio": times,
}


def quantity(value: object, unit: object) -> str:
    """``value`` in ``unit`` (s, bytes, usd, per_s, tokens_per_s, tokens, share, ratio, or any word put after it).

    >>> quantity(0.05, "s"), quantity(12.3, "per_s"), quantity(3, "cards"), quantity("TP2", "")
    ('50.0 ms', '12.3/s', '3 cards', 'TP2')
    """
    if isinstance(value, str):
        return value if not unit else f"{value} {unit}"
    if isinstance(unit, str) and unit in _BY_UNIT and number(value) is not None:
        return _BY_UNIT[unit](value)
    return f"{figure(value)} {unit}" if isinstance(unit, str) and unit else figure(value)


def by_key(key: str, value: object) -> str:
    """``value`` in the unit that its key ends in (CONTRACT: ``_s``, ``_bytes``, ``_tokens``, ``_usd``, ``_per_s``).

    >>> by_key("step_s", 0.0138), by_key("goodput_per_s", 2.5), by_key("kv_tokens", 4096)
    ('13.8 ms', '2.50', '4,096')
    """
    if key.endswith(("_per_s", "_rate")):
        return rate(value)
    if key.endswith("_s"):
        return seconds(value)
    if key.endswith("_bytes"):
        return size(value)
    if key.endswith("_usd"):
        return dollars(value)
    return count(value) if key.endswith("_tokens") else figure(value)
