"""An answer that is a refusal, in the form of the OpenAI API: ``{"error": {message, type, param, code}}``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from servewise.errors import InputError

KINDS = {401: "authentication_error", 429: "rate_limit_error"}


class Fault(Exception):
    """An HTTP ``status`` with what is wrong; ``param`` is the request's field, ``code`` a word for programs.

    ``headers`` go with the answer. Source: the error object of the OpenAI API reference
    (platform.openai.com/docs/guides/error-codes).
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.message, self.status, self.param, self.code = message, status, param, code
        self.headers = dict(headers or {})
        super().__init__(message)

    @property
    def kind(self) -> str:
        """OpenAI's ``type``."""
        return KINDS.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")

    def document(self) -> dict[str, Any]:
        """The body of the response."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}

    def text(self) -> str:
        """The document as JSON in ASCII: what is quoted from the request may be no UTF-8."""
        return json.dumps(self.document())


def fault_of(error: InputError, param: str | None = None) -> Fault:
    """A mistake that the engine found, as the answer to the request that made it."""
    return Fault(str(error), param=param)
