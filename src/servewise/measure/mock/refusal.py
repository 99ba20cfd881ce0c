"""Answers that are no generation: errors, redirects, and bodies that are no stream."""

from __future__ import annotations

from servewise.measure.mock.documents import error_document
from servewise.measure.mock.fault import Fault
from servewise.measure.mock.heads import head_of, stream_head
from servewise.measure.mock.plan import MockPlan
from servewise.measure.mock.script import End, Script
from servewise.measure.mock.shape import Shape

_PHRASES = {
    307: "Temporary Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_STATUS = {
    Fault.BAD_REQUEST: 400,
    Fault.UNAUTHORISED: 401,
    Fault.FORBIDDEN: 403,
    Fault.NOT_FOUND: 404,
    Fault.RATE_LIMITED: 429,
    Fault.RATE_LIMITED_ONCE: 429,
    Fault.REDIRECT: 307,
    Fault.SERVER_ERROR: 500,
    Fault.UNAVAILABLE: 503,
}


def refusal(status: int, message: str, plan: MockPlan) -> Script:
    """An error with a body as OpenAI's API tells it, and the fields that its status calls for."""
    body = error_document(message, _PHRASES[status].replace(" ", ""), status)
    more: tuple[str, ...] = ()
    if status == 429 and plan.retry_after is not None:
        more = (f"retry-after: {plan.retry_after}",)
    if status == 307:
        more = (f"location: {plan.redirect_to}",)
    return Script(at_once=head_of(status, _PHRASES[status], len(body), more=more) + body, name=str(status))


def refusing(fault: Fault, plan: MockPlan) -> Script | None:
    """What stands in the place of an answer; None for faults that strike an answer."""
    if fault in _STATUS:
        return refusal(_STATUS[fault], f"the plan says {fault.value}", plan)
    error = error_document("the engine has stopped", "InternalServerError", 500)
    scripts = {
        Fault.RESET_AT_ONCE: Script(end=End.RESET),
        Fault.CLOSE_AT_ONCE: Script(end=End.CLOSE),
        Fault.SILENT: Script(end=End.STALL),
        Fault.ERROR_BODY: Script(at_once=head_of(200, "OK", len(error)) + error),
        Fault.EMPTY_BODY: Script(at_once=stream_head(Shape()) + b"0\r\n\r\n"),
        Fault.HTML_BODY: Script(at_once=head_of(200, "OK", len(_PAGE), kind="text/html") + _PAGE),
    }
    return scripts.get(fault)


_PAGE = b"<html><body>Welcome to the portal</body></html>"
