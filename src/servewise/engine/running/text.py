"""Text as it grows: tokens to characters, never half of one, and stop strings wherever they straddle tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]
PROMPT_TAIL = 5  # prompt tokens decoded along, so that a leading space is kept (vLLM's detokenizer does the same)
UNFINISHED = "\N{REPLACEMENT CHARACTER}"


class Detokenizer:
    """The text of tokens that come one by one.

    Each text is the difference of two decodings that begin a few tokens back, because a token's text depends on those
    before it; a text that ends in the middle of a UTF-8 character waits for the rest (as in vLLM and TGI).
    """

    def __init__(self, decode: Decode, prompt: Sequence[int] = ()) -> None:
        self._decode = decode
        tail = list(prompt[-PROMPT_TAIL:])
        self._tokens = [] if decode(tail).endswith(UNFINISHED) else tail
        self._start = 0
        self._read = len(self._tokens)

    def push(self, token: int) -> str:
        """The text that ``token`` brings; empty while a character is not complete."""
        self._tokens.append(token)
        text = self._fresh()
        if not text or text.endswith(UNFINISHED):
            return ""
        self._start, self._read = self._read, len(self._tokens)
        return text

    def flush(self) -> str:
        """The text held back at the end, an incomplete character as the replacement character."""
        text = self._fresh()
        self._read = len(self._tokens)
        return text

    def _fresh(self) -> str:
        before = self._decode(self._tokens[self._start : self._read])
        return self._decode(self._tokens[self._start :])[len(before) :]


class StopScanner:
    """Lets text through up to the first stop string; holds back only what may be the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.stop: str | None = None

    def push(self, text: str) -> str:
        """The text that can be shown now that ``text`` came; ``stop`` is set once a stop string is complete."""
        text = self._held + text
        at, stop = min(((at, stop) for stop in self._stops if (at := text.find(stop)) >= 0), default=(-1, ""))
        if at >= 0:
            self.stop, self._held = stop, ""
            return text[:at]
        held = self._beginning(text)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def flush(self) -> str:
        """The text held back, at the end."""
        held, self._held = self._held, ""
        return held

    def _beginning(self, text: str) -> int:
        """The length of the longest end of ``text`` that begins a stop string."""
        longest = 0
        for stop in self._stops:
            for length in range(min(len(stop) - 1, len(text)), longest, -1):
                if text.endswith(stop[:length]):
                    longest = length
                    break
        return longest


class OutputText:
    """The reply's text: a detokenizer and a stop scanner in a row. ``text`` is all that was let through."""

    def __init__(self, decode: Decode, prompt: Sequence[int], stops: Sequence[str]) -> None:
        self._detokenizer = Detokenizer(decode, prompt)
        self._scanner = StopScanner(stops)
        self.text = ""

    @property
    def stop(self) -> str | None:
        """The stop string that was met, if any."""
        return self._scanner.stop

    def push(self, token: int) -> str:
        """The text to show for ``token``."""
        return self._show(self._scanner.push(self._detokenizer.push(token)))

    def flush(self) -> str:
        """What is still to show at the end; it may complete a stop string."""
        if self.stop is not None:
            return ""
        return self._show(self._scanner.push(self._detokenizer.flush()) + self._scanner.flush())

    def _show(self, text: str) -> str:
        self.text += text
        return text
