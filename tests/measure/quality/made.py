"""Exchanges made by hand."""

from __future__ import annotations

from servewise.measure.ask import Ask
from servewise.measure.exchange import Exchange
from servewise.measure.outcome import Outcome


def exchange(*logprobs: object, text: str | None = None) -> Exchange:
    """A completed answer with these logprobs."""
    ask = Ask(serial=0, body=b"", output_tokens=1)
    ended = {"outcome": Outcome.COMPLETED, "finish_reason": "stop"}
    return Exchange(ask=ask, scheduled_s=0.0, text=text, logprobs=logprobs, **ended)  # type: ignore[arg-type]


def chat(token: str, logprob: float, **top: float) -> dict[str, object]:
    """A token as chat tells it."""
    listed = [{"token": name, "logprob": value, "bytes": list(name.encode())} for name, value in top.items()]
    return {"token": token, "logprob": logprob, "bytes": list(token.encode()), "top_logprobs": listed}


def completion(token: str, logprob: float, **top: float) -> dict[str, object]:
    """A token as completions tell it, once paired."""
    return {"token": token, "logprob": logprob, "top_logprobs": top}
