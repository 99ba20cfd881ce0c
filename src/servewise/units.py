"""Units: SI inside (seconds, bytes, tokens, FLOP/s, bytes/s); other units only when printing.

>>> format_bytes(2 * GIB), format_seconds(0.0138), format_count(13015864320)
('2.00 GiB', '13.8 ms', '13.02 B')
"""

from __future__ import annotations

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12
TERA = 1e12
MILLISECOND, MICROSECOND = 1e-3, 1e-6
DAY_S = 86_400.0


def _scaled(value: float, steps: tuple[tuple[float, str], ...], digits: int) -> str:
    for size, unit in steps:
        if abs(value) >= size:
            return f"{value / size:,.{digits}f} {unit}"
    size, unit = steps[-1]
    return f"{value / size:,.{digits}f} {unit}"


def format_bytes(value: float) -> str:
    """Bytes as people read them, in binary units."""
    return _scaled(value, ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"), (1, "B")), 2)


def format_seconds(value: float) -> str:
    """A duration with three significant digits: 13.8 ms, 2.41 s, 950 µs."""
    for size, unit in ((1.0, "s"), (MILLISECOND, "ms"), (MICROSECOND, "µs")):
        if abs(value) >= size or unit == "µs":
            scaled = value / size
            digits = 0 if abs(scaled) >= 100 else 1 if abs(scaled) >= 10 else 2
            return f"{scaled:,.{digits}f} {unit}"
    raise AssertionError("unreachable")


def format_count(value: float) -> str:
    """A count in thousands, millions, billions or trillions."""
    return _scaled(value, ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"), (1, "")), 2).rstrip()
