"""What a server takes at most: of a request, and of its connections."""

from __future__ import annotations

import resource

from servewise.ask.numbers import positive, whole
from servewise.ask.serve_options import ServeOptions
from servewise.engine.server.limits import BODIES_BYTES, Limits, RequestLimits, body_bytes_for

SPARE_FILES = 64  # file descriptors for other things than connections


def request_limits_of(options: ServeOptions, slots: int) -> RequestLimits:
    """The limits of a request; it cannot have more choices than the server holds at once."""
    places = slots + whole(options.queued, "max queued", least=0)
    for value, what in ((options.prompt_tokens, "max prompt tokens"), (options.output_tokens, "max output tokens")):
        if value is not None:
            whole(value, what)
    return RequestLimits(
        prompt_tokens=options.prompt_tokens,
        output_tokens=options.output_tokens,
        choices=min(whole(options.choices, "max choices", most=65_536), places),
    )


def limits_of(options: ServeOptions, context_tokens: int) -> Limits:
    """The server's limits; no more connections than this process may open files."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_FILES
    body = int(options.body_bytes) if options.body_bytes is not None else body_bytes_for(context_tokens)
    return Limits(
        queued=options.queued,
        connections=max(1, min(whole(options.connections, "max connections"), files)),
        body_bytes=body,
        bodies_bytes=max(BODIES_BYTES, 4 * body),
        body_s=positive(options.body_s, "body timeout", most=86_400),
        head_s=positive(options.head_s, "head timeout", most=86_400),
        stalled_s=positive(options.stalled_s, "stall timeout", most=86_400),
        unread_tokens=whole(options.unread_tokens, "unread tokens"),
    )
