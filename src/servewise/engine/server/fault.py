"""An answer that is a refusal, in the form of the OpenAI API: ``{"error": {message, type, param, code}}``."""

from __future__ import annotations

from typing import Any

from servewise.errors import InputError


class Fault(Exception):
    """An HTTP ``status`` with what is wrong; ``param`` is the request's field, ``code`` a word for programs.

    Source: the error object of the OpenAI API reference (platform.openai.com/docs/guides/error-codes).
    """

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        self.message, self.status, self.param, self.code = message, status, param, code
        super().__init__(message)

    @property
    def kind(self) -> str:
        """OpenAI's ``type``."""
        if self.status == 401:
            return "authentication_error"
        return "server_error" if self.status >= 500 else "invalid_request_error"

    def document(self) -> dict[str, Any]:
        """The body of the response."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}


def fault_of(error: InputError, param: str | None = None) -> Fault:
    """A mistake that the engine found, as the answer to the request that made it."""
    return Fault(str(error), param=param)
