"""One request as it will be sent: made before its time comes, so that nothing is built when it is due."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request of a run. ``serial`` counts from 0 over the run; ``body`` is the whole JSON body.

    ``prompt_tokens`` is what the prompt was made to be (None: not known), ``output_tokens`` the most that is asked for.
    ``group`` names a shared prefix or a session, ``turn`` the place within a session; ``streamed`` whether the body
    asks for a stream.
    """

    serial: int
    body: bytes
    output_tokens: int
    prompt_tokens: int | None = None
    group: int | None = None
    turn: int = 0
    streamed: bool = True
