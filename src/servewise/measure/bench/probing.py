"""The first words with a server: does it answer, does it know the model, does it stream, which fields does it take?"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from servewise.caveats import Caveat
from servewise.errors import InputError, RunFailed, ServewiseError, UnknownName
from servewise.measure.addressing import ENDPOINTS
from servewise.measure.ask import Ask
from servewise.measure.exchange import Exchange
from servewise.measure.hiding import shown_address
from servewise.measure.load.bodies import Form
from servewise.measure.load.prompt import Prompt
from servewise.measure.outcome import Outcome
from servewise.measure.scrape.exposition import samples
from servewise.measure.scrape.meanings import WANTED, dialect_of
from servewise.measure.target import Target

TOKENS = 8
ENGINES = {"vllm", "sglang", "llamacpp", "servewise", "lmdeploy", "mistralrs"}  # as they write it in ``owned_by``
TRIES, LONGEST_WAIT_S = 4, 60.0
Send = Callable[[Ask], Exchange]


@dataclass(frozen=True, slots=True)
class Probed:
    """``form`` is what the server takes of the form that was wanted; ``exchange`` the probe that it answered."""

    form: Form
    exchange: Exchange
    caveats: tuple[Caveat, ...]


def probe(target: Target, form: Form, send: Send, fetch: Callable[[str], bytes]) -> Probed:
    """Ask ``target`` for a few tokens; ``fetch`` brings a document of the server by its path.

    A server that refuses a field which not all know (``ignore_eos``, ``seed``, ``stream_options``) is asked without.
    Raises InputError for what the user can mend (path, model, key, TLS), RunFailed for what the server must.
    """
    found = None
    for each in _simpler(form):
        found = send(_ask(each))
        if found.outcome is Outcome.COMPLETED:
            caveats = (*_left_out(form, each), *_pieces(found, each), *_unlisted(target, fetch))
            return Probed(each, found, caveats)
        if found.outcome is not Outcome.CLIENT_ERROR:
            break
    assert found is not None
    raise _refusal(target, found, fetch)


def models_of(target: Target, fetch: Callable[[str], bytes]) -> tuple[str, ...]:
    """The names that the server lists; none where it lists none."""
    return tuple(name for each in _listed(target, fetch) if isinstance(name := each.get("id"), str))


def engine_of(target: Target, fetch: Callable[[str], bytes]) -> str | None:
    """The engine that the server names itself as, with its version where it tells one; None where it tells none.

    Its list of models says whose they are (``owned_by``), and ``/version`` the version (vLLM, this project's engine).
    """
    owners = {str(each.get("owned_by")).lower() for each in _listed(target, fetch)} & ENGINES
    if len(owners) != 1:
        return None
    told = _document(target.metrics_path.removesuffix("/metrics") + "/version", fetch)
    version = told.get("version") if isinstance(told, dict) else None
    known = isinstance(version, str) and re.fullmatch(r"[0-9A-Za-z.+_-]{1,40}", version)
    return f"{owners.pop()} {version}" if known else owners.pop()


def dialect_at(target: Target, fetch: Callable[[str], bytes]) -> str | None:
    """Whose names the server's metrics have; None where it has none that are known."""
    try:
        found = dialect_of(samples(fetch(target.metrics_path), WANTED))
    except ServewiseError:
        return None
    return None if found is None else found.engine


def _listed(target: Target, fetch: Callable[[str], bytes]) -> list[dict[str, Any]]:
    listed = _document(target.path.partition("?")[0].removesuffix(ENDPOINTS[target.api]) + "/models", fetch)
    data = listed.get("data") if isinstance(listed, dict) else None
    return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []


def _document(path: str, fetch: Callable[[str], bytes]) -> Any:
    """The JSON at ``path``; None where there is none."""
    try:
        return json.loads(fetch(path))
    except (ServewiseError, ValueError, RecursionError):
        return None


def _simpler(form: Form) -> Iterator[Form]:
    yield form
    if form.ignore_eos:
        yield replace(form, ignore_eos=False)
    yield replace(form, ignore_eos=False, seed=None)
    yield replace(form, ignore_eos=False, seed=None, usage=False)


def _ask(form: Form) -> Ask:
    body = form.body(Prompt("Count from one to twenty."), TOKENS)
    return Ask(serial=0, body=body, output_tokens=TOKENS, streamed=form.streamed)


def patiently(send: Send, ask: Ask) -> Exchange:
    """The answer to ``ask``, after the waits that a rate limit asks for (up to a minute each, three at most)."""
    found = send(ask)
    for _ in range(TRIES - 1):
        wait_s = 1.0 if found.retry_after_s is None else found.retry_after_s
        if found.outcome is not Outcome.RATE_LIMITED or wait_s > LONGEST_WAIT_S:
            break
        time.sleep(max(wait_s, 0.0))
        found = send(ask)
    return found


def _left_out(wanted: Form, taken: Form) -> tuple[Caveat, ...]:
    lost = [name for name in ("ignore_eos", "seed", "usage") if getattr(wanted, name) != getattr(taken, name)]
    if not lost:
        return ()
    message = f"the server refuses {', '.join(lost)}, so requests go without"
    cure = "answers may be shorter than asked: see the lengths in the rows"
    return (Caveat("fields-refused", message, cure),)


def _pieces(found: Exchange, form: Form) -> tuple[Caveat, ...]:
    if not form.streamed or len(found.arrivals) > 1 or (found.output_tokens or 0) < TOKENS // 2:
        return ()
    message = f"the server sent {found.output_tokens} tokens in one piece: TTFT is the whole answer, TPOT is not known"
    return (Caveat("not-streaming", message, "turn streaming on at the server or at the proxy before it"),)


def _unlisted(target: Target, fetch: Callable[[str], bytes]) -> tuple[Caveat, ...]:
    """llama.cpp and some proxies answer to any name."""
    known = models_of(target, fetch)
    if not known or target.model in known:
        return ()
    message = f"the server answers to the name {target.model!r} and lists {', '.join(known[:3])[:120]}"
    return (Caveat("model-not-listed", message, f"--model {known[0][:80]}, if that is what is measured"),)


# What the user can mend: what is wrong, and how.
MENDABLE = {
    Outcome.TLS: ("there is no trusted connection", "--insecure trusts any certificate; or http://"),
    Outcome.UNAUTHORISED: ("the server refuses the key", "give the right one by --api-key or its environment variable"),
    Outcome.REDIRECTED: ("the server points elsewhere", "give that address"),
    Outcome.NOT_FOUND: ("there is no such endpoint", "give the server's address with its /v1, or --api"),
    Outcome.CLIENT_ERROR: ("the server refuses the request", "see its reason"),
}
# What the server must mend.
BROKEN = {
    Outcome.REFUSED: "no server answers; is it running, and at this port?",
    Outcome.PROTOCOL: "no OpenAI-compatible server answers there",
    Outcome.BAD_EVENT: "no OpenAI-compatible server answers there",
    Outcome.EMPTY: "the server answered without a token",
    Outcome.RATE_LIMITED: "the server's rate limit leaves no room",
}


def _refusal(target: Target, found: Exchange, fetch: Callable[[str], bytes]) -> ServewiseError:
    """What is wrong, where it can be mended."""
    said, where = found.reason or found.outcome.value, shown_address(target)
    if found.outcome in (Outcome.NOT_FOUND, Outcome.CLIENT_ERROR):
        unknown = _unknown_model(target, fetch)
        if unknown is not None:
            return unknown
    if found.outcome in MENDABLE:
        what, hint = MENDABLE[found.outcome]
        return InputError(f"{what} ({said})", where=where, hint=hint)
    what = BROKEN.get(found.outcome, f"the server did not answer the probe ({found.outcome.value})")
    return RunFailed(f"{where}: {what} ({said})")


def _unknown_model(target: Target, fetch: Callable[[str], bytes]) -> UnknownName | None:
    known = models_of(target, fetch)
    if not known or target.model in known:
        return None
    listed = f"the server has {', '.join(known[:5])}"
    return UnknownName("model", target.model, known, where=target.origin, hint=listed)
