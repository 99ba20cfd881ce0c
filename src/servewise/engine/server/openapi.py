"""What the API accepts as an OpenAPI 3.1 document, made from the limits that the readers hold requests to.

A body that the document allows is answered, unless it is too long for the context; one that it does not allow is
refused with 400 (a fuzz test holds both).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servewise.engine.server.asked import LARGEST, MOST_LOGPROBS, Served
from servewise.engine.server.fields import LABELS, NEUTRAL

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": ["boolean", "null"]}


def openapi(served: Served, *, keyed: bool) -> dict[str, Any]:
    """The document for ``served``; ``keyed``: requests under /v1 need a key."""
    security: Schema = {"security": [{"key": []}]} if keyed else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "servewise", "version": served.version or "0"},
        "paths": {
            "/v1/chat/completions": {"post": _generating("chat", _chat(served)) | security},
            "/v1/completions": {"post": _generating("completion", _completion(served)) | security},
            "/v1/models": {"get": _reading("models") | security},
            "/v1/models/{name}": {"get": _named() | security},
            "/health": {"get": _plain("health", "the engine steps", 503)},
            "/ready": {"get": _reading("ready", 503)},
            "/metrics": {"get": _plain("metrics", "Prometheus' text format")},
            "/version": {"get": _reading("version")},
            "/openapi.json": {"get": _reading("openapi")},
        },
        "components": {
            "schemas": {"Error": _error()},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _generating(name: str, body: Schema) -> Schema:
    events = {"text/event-stream": {"schema": TEXT}}
    answer = {"description": "the answer", "content": _json({"type": "object"}) | events}
    request = {"required": True, "content": _json(body)}
    failures = (400, 401, 403, 404, 408, 413, 415, 429, 500, 503)
    return {"operationId": name, "requestBody": request, "responses": {"200": answer} | _failures(*failures)}


def _reading(name: str, *failures: int) -> Schema:
    answer = {"description": "the answer", "content": _json({"type": "object"})}
    return {"operationId": name, "responses": {"200": answer} | _failures(401, 403, *failures)}


def _named() -> Schema:
    name = {"name": "name", "in": "path", "required": True, "schema": TEXT}
    found = _reading("model", 404)
    return found | {"parameters": [name]}


def _plain(name: str, what: str, *failures: int) -> Schema:
    answers: Schema = {str(each): {"description": "it does not"} for each in failures}
    return {"operationId": name, "responses": {"200": {"description": what}} | answers}


def _failures(*statuses: int) -> Schema:
    content = _json({"$ref": "#/components/schemas/Error"})
    return {str(each): {"description": "refused", "content": content} for each in statuses}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _error() -> Schema:
    maybe = {"type": ["string", "null"]}
    fields: Schema = {"message": TEXT, "type": TEXT, "param": maybe, "code": maybe}
    inner = {"type": "object", "required": list(fields), "properties": fields}
    return {"type": "object", "required": ["error"], "properties": {"error": inner}}


def _object(properties: Mapping[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _whole(least: int, most: int) -> Schema:
    return {"type": ["integer", "null"], "minimum": least, "maximum": most}


def _number(**bounds: float) -> Schema:
    return {"type": ["number", "null"], **bounds}


def _chat(served: Served) -> Schema:
    parts = {"type": "array", "items": _object({"type": {"const": "text"}, "text": TEXT}, "type", "text")}
    message = _object(
        {"role": TEXT, "name": {"type": ["string", "null"]}, "content": {"anyOf": [TEXT, parts]}}, "role", "content"
    )
    return _object(
        _common(served)
        | {
            "messages": {"type": "array", "items": message, "minItems": 1},
            "max_completion_tokens": _limit(served),
            "logprobs": FLAG,
            "top_logprobs": _whole(0, MOST_LOGPROBS),
        },
        "model",
        "messages",
    ) | {"allOf": [_if("top_logprobs", "logprobs"), _if("stream_options", "stream")]}


def _completion(served: Served) -> Schema:
    token = {"type": "integer", "minimum": 0, "maximum": served.vocabulary - 1}
    tokens = {"type": "array", "items": token, "minItems": 1}
    text = TEXT | {"minLength": 1}
    several = {"type": "array", "items": {"anyOf": [text, tokens]}, "minItems": 1, "maxItems": served.limits.choices}
    return _object(
        _common(served) | {"prompt": {"anyOf": [text, tokens, several]}, "logprobs": _whole(0, MOST_LOGPROBS)},
        "model",
        "prompt",
    ) | {"allOf": [_if("stream_options", "stream")]}


def _if(field: str, flag: str) -> Schema:
    """Where ``field`` is given (null is as good as absent), ``flag`` must be true."""
    given = {"properties": {field: {"not": {"type": "null"}}}, "required": [field]}
    return {"if": given, "then": {"properties": {flag: {"const": True}}, "required": [flag]}}


def _limit(served: Served) -> Schema:
    return _whole(1, min(served.limits.output_tokens or LARGEST, served.context_tokens))


def _common(served: Served) -> dict[str, Schema]:
    limits = served.limits
    stop = TEXT | {"minLength": 1, "maxLength": limits.stop_characters}
    options = _object({"include_usage": FLAG, "continuous_usage_stats": FLAG, "include_obfuscation": FLAG})
    return {
        "model": {"const": served.name},
        "max_tokens": _limit(served),
        "n": _whole(1, limits.choices),
        "stream": FLAG,
        "stream_options": {"anyOf": [options, {"type": "null"}]},
        "temperature": _number(minimum=0),
        "top_p": _number(exclusiveMinimum=0, maximum=1),
        "top_k": _whole(-1, LARGEST),
        "min_p": _number(minimum=0, maximum=1),
        "presence_penalty": _number(minimum=-2, maximum=2),
        "frequency_penalty": _number(minimum=-2, maximum=2),
        "repetition_penalty": _number(exclusiveMinimum=0),
        "seed": _whole(-LARGEST, LARGEST - limits.choices),
        "stop": {"anyOf": [stop, {"type": "array", "items": stop, "maxItems": limits.stops}, {"type": "null"}]},
        "ignore_eos": FLAG,
        **{name: {"type": ["string", "null"]} for name in sorted(LABELS)},
        **{name: {"enum": [*values, None]} for name, values in NEUTRAL.items()},
    }
