"""The workload file, TOML, every key checked:

    title = "chat"                     # optional
    requests = 2000                    # and/or duration_s = 600

    [arrivals]
    kind = "poisson"                   # poisson, constant: rate_per_s | gamma: rate_per_s, cv
    rate_per_s = 2.0                   # ramp: start_per_s, end_per_s, over_s | closed: concurrency, think_s

    [prompt_tokens]                    # and [output_tokens]
    kind = "lognormal"                 # median with sigma, mean or p95, and cap
    median = 608                       # fixed: tokens | uniform: low, high | empirical: values
    p95 = 2500

    [prefix]                           # optional
    groups = 4
    tokens = 512
    share = 0.8                        # of the requests; 1 if left out
    block_tokens = 16                  # 16 if left out

conversations, whose turns begin with all that was said before, in place of prompts:

    requests = 2000                    # turns
    max_context_tokens = 32768         # optional: a conversation ends before it would outgrow this
    settle_s = 600                     # optional: what a run does not count, at first all conversations being new

    [arrivals]                         # of conversations, as above; closed: users, each in one conversation at a time
    kind = "poisson"
    rate_per_s = 0.3

    [turns]                            # of each conversation: a length as above, and so [user_tokens] (what a user
    kind = "uniform"                   # says), [output_tokens], and [opening_tokens] (optional: a document, on top of
    low = 6                            # the first turn)
    high = 9

    [thinking]                         # optional: from the end of an answer to the next turn
    mean_s = 20
    cv = 1                             # 0 if left out: always the mean; 1: exponential

    [prefix]                           # optional: system prompts, as above

or a trace in place of arrivals and lengths:

    [trace]
    path = "my-trace.jsonl"            # beside the workload file
    rate_per_s = 3.0                   # as recorded if left out
    sort = false
    limit = 10000                      # rows to read
    block_tokens = 16
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from servewise.errors import InputError, UnknownName
from servewise.workload import checks
from servewise.workload.arrivals import Arrivals, Constant, Gamma, Poisson, Ramp
from servewise.workload.conversations import MOST_CONTEXT, Conversations
from servewise.workload.lengths import Empirical, Fixed, Lengths, Lognormal, Uniform
from servewise.workload.prefix import SharedPrefix
from servewise.workload.synthetic import ClosedLoop, Synthetic
from servewise.workload.thinking import NO_THINKING, Thinking
from servewise.workload.traces.load import load_trace
from servewise.workload.traces.trace import Trace

MAX_BYTES = 2**24
ARRIVALS: dict[str, Callable[..., Arrivals]] = {"poisson": Poisson, "constant": Constant, "gamma": Gamma, "ramp": Ramp}
NEEDS = {
    "poisson": ("rate_per_s",),
    "constant": ("rate_per_s",),
    "gamma": ("rate_per_s", "cv"),
    "ramp": ("start_per_s", "end_per_s", "over_s"),
    "closed": ("concurrency",),
    "fixed": ("tokens",),
    "uniform": ("low", "high"),
    "lognormal": ("median",),
    "empirical": ("values",),
}
MAY = {"closed": ("think_s",), "lognormal": ("sigma", "mean", "p95", "cap")}
SHAPES = ("fixed", "uniform", "lognormal", "empirical")
TALK = ("turns", "user_tokens", "output_tokens")
Table = Mapping[str, Any]
Described = Synthetic | ClosedLoop | Conversations | Trace


def read_workload(path: Path) -> Described:
    """The workload that the TOML file at ``path`` describes; InputError for anything that it does not know."""
    where, found = str(path), _parsed(path)
    try:
        return described(found, where, path.parent)
    except InputError as error:
        if error.where:
            raise
        raise InputError(error.what, where=where, hint=error.hint) from error


def traces_of(path: Path) -> tuple[Path, ...]:
    """The trace that the TOML file at ``path`` names, if any; InputError where it cannot be read."""
    part = _parsed(path).get("trace")
    named = part.get("path") if isinstance(part, dict) else None
    return (path.parent / named,) if isinstance(named, str) else ()


def _parsed(path: Path) -> Table:
    where = str(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError("is over 16 MB: no workload file is", where=where)
        return tomllib.loads(path.read_text("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError("is not text in UTF-8", where=where) from error
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", where=where) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no TOML ({' '.join(str(error).split())[:160]})", where=where) from error


def described(table: Table, where: str, folder: Path) -> Described:
    """The workload in a parsed TOML table; traces are looked for in ``folder``."""
    if "trace" in table:
        _known(table, ("trace", "title", "requests"), where)
        return _trace(_part(table, "trace", where), table, where, folder)
    if "turns" in table or "user_tokens" in table:
        return _conversations(table, where)
    keys = ("title", "requests", "duration_s", "arrivals", "prompt_tokens", "output_tokens", "prefix")
    _known(table, keys, where)
    arrivals = _part(table, "arrivals", where)
    prompts, outputs = (_lengths(_part(table, name, where), f"{where}: {name}") for name in keys[4:6])
    prefix = _prefix(_part(table, "prefix", where), f"{where}: prefix") if "prefix" in table else None
    kind = _kind(arrivals, (*ARRIVALS, "closed"), f"{where}: arrivals")
    if kind == "closed":
        return _closed(table, arrivals, prompts, outputs, prefix, where)
    return Synthetic(
        arrivals=ARRIVALS[kind](*(_number(arrivals, key, f"{where}: arrivals") for key in NEEDS[kind])),
        prompt_lengths=prompts,
        output_lengths=outputs,
        count=_whole(table, "requests", where) if "requests" in table else None,
        duration_s=_number(table, "duration_s", where) if "duration_s" in table else None,
        prefix=prefix,
        name=_title(table, where),
    )


def _closed(
    table: Table, arrivals: Table, prompts: Lengths, outputs: Lengths, prefix: SharedPrefix | None, where: str
) -> ClosedLoop:
    if "requests" not in table or "duration_s" in table:
        raise InputError("a closed loop ends after a number of requests", where=where, hint="give requests")
    think = _number(arrivals, "think_s", f"{where}: arrivals") if "think_s" in arrivals else 0.0
    concurrency = _whole(arrivals, "concurrency", f"{where}: arrivals")
    return ClosedLoop(concurrency, think, prompts, outputs, _whole(table, "requests", where), prefix)


def _conversations(table: Table, where: str) -> Conversations:
    parts = ("arrivals", *TALK, "opening_tokens", "thinking", "prefix")
    _known(table, ("title", "requests", "max_context_tokens", "settle_s", *parts), where)
    arrivals = _part(table, "arrivals", where)
    kind = _kind(arrivals, (*ARRIVALS, "closed"), f"{where}: arrivals")
    if "think_s" in arrivals:
        raise InputError("conversations have a table [thinking]", where=f"{where}: arrivals", hint="not think_s")
    given = [name for name in (*TALK, "opening_tokens") if name in TALK or name in table]
    lengths = {name: _lengths(_part(table, name, where), f"{where}: {name}") for name in given}
    numbers = () if kind == "closed" else (_number(arrivals, key, f"{where}: arrivals") for key in NEEDS[kind])
    return Conversations(
        **lengths,
        count=_whole(table, "requests", where),
        arrivals=None if kind == "closed" else ARRIVALS[kind](*numbers),
        users=_whole(arrivals, "concurrency", f"{where}: arrivals") if kind == "closed" else None,
        thinking=_thinking(_part(table, "thinking", where), f"{where}: thinking")
        if "thinking" in table
        else NO_THINKING,
        prefix=_prefix(_part(table, "prefix", where), f"{where}: prefix") if "prefix" in table else None,
        max_context_tokens=_whole(table, "max_context_tokens", where)
        if "max_context_tokens" in table
        else MOST_CONTEXT,
        settle_s=_number(table, "settle_s", where) if "settle_s" in table else None,
        name=_title(table, where),
    )


def _thinking(table: Table, where: str) -> Thinking:
    _known(table, ("mean_s", "cv"), where)
    return Thinking(_number(table, "mean_s", where), _number(table, "cv", where) if "cv" in table else 0.0)


def _lengths(table: Table, where: str) -> Lengths:
    kind = _kind(table, SHAPES, where)
    if kind == "fixed":
        return Fixed(_whole(table, "tokens", where))
    if kind == "uniform":
        return Uniform(_whole(table, "low", where), _whole(table, "high", where))
    if kind == "empirical":
        values = table["values"]
        if not isinstance(values, list):
            raise InputError("values must be a list of whole numbers", where=where)
        return Empirical([checks.tokens(value, "a value", where=where) for value in values])
    return _lognormal(table, where)


def _lognormal(table: Table, where: str) -> Lognormal:
    spread = [key for key in ("sigma", "mean", "p95") if key in table]
    if len(spread) != 1:
        raise InputError("a lognormal needs its median and one of sigma, mean, p95", where=where)
    median, value = _number(table, "median", where), _number(table, spread[0], where)
    cap = _whole(table, "cap", where) if "cap" in table else None
    if spread == ["sigma"]:
        return Lognormal(median, value, cap)
    return (Lognormal.from_mean if spread == ["mean"] else Lognormal.from_percentile)(median, value, cap=cap)


def _prefix(table: Table, where: str) -> SharedPrefix:
    _known(table, ("groups", "tokens", "share", "block_tokens"), where)
    share = _number(table, "share", where) if "share" in table else 1.0
    block = _whole(table, "block_tokens", where) if "block_tokens" in table else 16
    return SharedPrefix(_whole(table, "groups", where), _whole(table, "tokens", where), share, block)


def _trace(part: Table, table: Table, where: str, folder: Path) -> Trace:
    here = f"{where}: trace"
    _known(part, ("path", "rate_per_s", "sort", "limit", "block_tokens"), here)
    if not isinstance(part.get("path"), str):
        raise InputError("a trace needs its path, a text", where=here)
    if not isinstance(part.get("sort", False), bool):
        raise InputError("sort must be true or false", where=here)
    found = load_trace(
        folder / part["path"],
        sort=part.get("sort", False),
        limit=_whole(part, "limit", here) if "limit" in part else None,
        block_tokens=_whole(part, "block_tokens", here) if "block_tokens" in part else None,
        name=_title(table, where) or None,
    )
    found = found.tiled(_whole(table, "requests", where)) if "requests" in table else found
    return found.at_rate(_number(part, "rate_per_s", here)) if "rate_per_s" in part else found


def _kind(table: Table, kinds: tuple[str, ...], where: str) -> str:
    """The table's kind, once its keys are known to be those that this kind has."""
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise UnknownName("kind", checks.shown(kind).strip("'"), kinds, where=where, hint=f"one of {', '.join(kinds)}")
    _known(table, ("kind", *NEEDS[kind], *MAY.get(kind, ())), where)
    missing = [key for key in NEEDS[kind] if key not in table]
    if missing:
        raise InputError(f"kind {kind!r} needs {', '.join(missing)}", where=where)
    return kind


def _known(table: Table, keys: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in keys:
            raise UnknownName("key", key[:40], keys, where=where, hint=f"the keys are {', '.join(keys)}")


def _part(table: Table, name: str, where: str) -> Table:
    part = table.get(name)
    if not isinstance(part, dict):
        raise InputError(f"needs a table [{name}]", where=where)
    return part


def _number(table: Table, key: str, where: str) -> float:
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300 or checks.is_nan(value):
        raise InputError(f"{key} must be a number, not {checks.shown(value)}", where=where)
    return float(value)


def _whole(table: Table, key: str, where: str) -> int:
    return checks.tokens(table.get(key), key, where=where)


def _title(table: Table, where: str) -> str:
    title = table.get("title", "")
    if not isinstance(title, str) or len(title) > 200:
        raise InputError("title must be a text of at most 200 characters", where=where)
    return title
