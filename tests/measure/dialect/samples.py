"""Answers as servers give them, byte for byte (ids and names shortened), with what they mean.

Written after the servers' own code and documentation: vLLM (vllm/entrypoints/openai/, its ``continuous_usage_stats``
and ``return_token_ids``), SGLang (python/sglang/srt/entrypoints/openai/), llama.cpp (tools/server and its README), TGI
(router/src/: no space after the colon), as of 2025 and 2026.
"""

from __future__ import annotations

from dataclasses import dataclass

from servewise.measure.outcome import Outcome

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A body, and what must be read from it. ``tokens`` by arrival; ``counts``: prompt, cached and output by usage."""

    name: str
    body: bytes
    outcome: Outcome = Outcome.COMPLETED
    tokens: tuple[int | None, ...] = ()
    text: str = ""
    reasoning: tuple[bool, ...] = ()
    counts: tuple[int | None, int | None, int | None] = (None, None, None)
    finish: str | None = None
    events: int = 0


VLLM = Sample(
    name="vllm: role first, then tokens, usage in an event of its own",
    body=(
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
        b'"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null}\n\n'
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
        b'"delta":{"content":"Hel"},"logprobs":null,"finish_reason":null,"token_ids":null}]}\n\n'
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
        b'"delta":{"content":"lo"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}]}\n\n'
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":'
        b'{"prompt_tokens":33,"total_tokens":35,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":16}}}\n\n'
    )
    + DONE,
    tokens=(None, None),
    text="Hello",
    reasoning=(False, False),
    counts=(33, 16, 2),
    finish="length",
    events=4,
)

VLLM_CONTINUOUS = Sample(
    name="vllm: usage in every event, several tokens in one (speculation)",
    body=(
        b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],'
        b'"usage":{"prompt_tokens":5,"total_tokens":5,"completion_tokens":0}}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"content":"a b c"},"finish_reason":null}],'
        b'"usage":{"prompt_tokens":5,"total_tokens":8,"completion_tokens":3}}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"content":" d"},"finish_reason":null}],'
        b'"usage":{"prompt_tokens":5,"total_tokens":9,"completion_tokens":4}}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"content":" e f"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":5,"total_tokens":11,"completion_tokens":6}}\n\n'
        b'data: {"choices":[],"usage":{"prompt_tokens":5,"total_tokens":11,"completion_tokens":6}}\n\n'
    )
    + DONE,
    tokens=(3, 1, 2),
    text="a b c d e f",
    reasoning=(False,) * 3,
    counts=(5, None, 6),
    finish="stop",
    events=5,
)

TOKEN_IDS = Sample(
    name="vllm: token ids in each event; one with ids and no text yet (half a character) is output too",
    body=(
        b'data: {"choices":[{"index":0,"text":"x","token_ids":[1,2],"finish_reason":null}]}\n\n'
        b'data: {"choices":[{"index":0,"text":"","token_ids":[3],"finish_reason":null}]}\n\n'
        b'data: {"choices":[{"index":0,"text":"y","token_ids":[4],"finish_reason":"length"}]}\n\n'
    )
    + DONE,
    tokens=(2, 1, 1),
    text="xy",
    reasoning=(False,) * 3,
    finish="length",
    events=3,
)

LOGPROBS = Sample(
    name="chat logprobs name the tokens of each event",
    body=(
        b'data: {"choices":[{"index":0,"delta":{"content":"ab"},"logprobs":{"content":[{"token":"a","logprob":-0.1,'
        b'"bytes":[97],"top_logprobs":[]},{"token":"b","logprob":-0.2,"bytes":[98],"top_logprobs":[]}]},'
        b'"finish_reason":null}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"content":"c"},"logprobs":{"content":[{"token":"c","logprob":-0.3,'
        b'"bytes":[99],"top_logprobs":[]}]},"finish_reason":"stop"}]}\n\n'
    )
    + DONE,
    tokens=(2, 1),
    text="abc",
    reasoning=(False, False),
    finish="stop",
    events=2,
)

SGLANG_REASONING = Sample(
    name="sglang: reasoning_content, null fields, usage null until the end",
    body=(
        b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
        b'{"role":"assistant","content":"","reasoning_content":null,"tool_calls":null},"logprobs":null,'
        b'"finish_reason":null,"matched_stop":null}],"usage":null}\n\n'
        b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
        b'{"role":null,"content":null,"reasoning_content":"Hm","tool_calls":null},"logprobs":null,'
        b'"finish_reason":null,"matched_stop":null}],"usage":null}\n\n'
        b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
        b'{"role":null,"content":"Yes","reasoning_content":null,"tool_calls":null},"logprobs":null,'
        b'"finish_reason":null,"matched_stop":null}],"usage":null}\n\n'
        b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
        b'{"role":null,"content":null,"reasoning_content":null,"tool_calls":null},"logprobs":null,'
        b'"finish_reason":"stop","matched_stop":2}],"usage":null}\n\n'
        b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":'
        b'{"prompt_tokens":9,"total_tokens":12,"completion_tokens":3,"prompt_tokens_details":null}}\n\n'
    )
    + DONE,
    tokens=(None, None),
    text="Yes",
    reasoning=(True, False),
    counts=(9, None, 3),
    finish="stop",
    events=5,
)

VLLM_REASONING = Sample(
    name="vllm: the field is called reasoning",
    body=(
        b'data: {"choices":[{"index":0,"delta":{"reasoning":"so"},"finish_reason":null}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"content":"on"},"finish_reason":"stop"}]}\n\n'
    )
    + DONE,
    tokens=(None, None),
    text="on",
    reasoning=(True, False),
    finish="stop",
    events=2,
)

LLAMA_CPP = Sample(
    name="llama.cpp: content null beside the role, timings and usage at the end",
    body=(
        b'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],'
        b'"created":1,"id":"chatcmpl-1","model":"m","system_fingerprint":"b1","object":"chat.completion.chunk"}\n\n'
        b'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hi"}}],"created":1,'
        b'"id":"chatcmpl-1","model":"m","system_fingerprint":"b1","object":"chat.completion.chunk"}\n\n'
        b'data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":1,"id":"chatcmpl-1",'
        b'"model":"m","system_fingerprint":"b1","object":"chat.completion.chunk"}\n\n'
        b'data: {"choices":[],"created":1,"id":"chatcmpl-1","model":"m","system_fingerprint":"b1",'
        b'"object":"chat.completion.chunk","usage":{"completion_tokens":2,"prompt_tokens":36,"total_tokens":38},'
        b'"timings":{"cache_n":30,"prompt_n":6,"prompt_ms":1.5,"prompt_per_token_ms":0.2,"prompt_per_second":4.0,'
        b'"predicted_n":2,"predicted_ms":9.1,"predicted_per_token_ms":4.5,"predicted_per_second":219.0}}\n\n'
    )
    + DONE,
    tokens=(None,),
    text="Hi",
    reasoning=(False,),
    counts=(36, 30, 2),
    finish="stop",
    events=4,
)

LLAMA_CPP_TIMINGS = Sample(
    name="llama.cpp: timings_per_token count the tokens of each event",
    body=(
        b'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"a"}}],'
        b'"timings":{"cache_n":0,"prompt_n":7,"predicted_n":1}}\n\n'
        b'data: {"choices":[{"finish_reason":"length","index":0,"delta":{"content":"bc"}}],'
        b'"timings":{"cache_n":0,"prompt_n":7,"predicted_n":3}}\n\n'
    )
    + DONE,
    tokens=(1, 2),
    text="abc",
    reasoning=(False, False),
    counts=(7, 0, 3),
    finish="length",
    events=2,
)

TGI = Sample(
    name="tgi: no space after the colon, keep-alive comments, usage beside an empty choice list",
    body=(
        b":\n\n"
        b'data:{"object":"chat.completion.chunk","id":"","created":1,"model":"m","system_fingerprint":"3","choices":'
        b'[{"index":0,"delta":{"role":"assistant","content":"A"},"logprobs":null,"finish_reason":null}],"usage":null}\n\n'
        b": keep-alive\n\n"
        b'data:{"object":"chat.completion.chunk","id":"","created":1,"model":"m","system_fingerprint":"3","choices":'
        b'[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":"stop"}],"usage":null}\n\n'
        b'data:{"object":"chat.completion.chunk","id":"","created":1,"model":"m","system_fingerprint":"3","choices":[],'
        b'"usage":{"prompt_tokens":4,"completion_tokens":2,"total_tokens":6}}\n\n'
        b"data:[DONE]\n\n"
    ),
    tokens=(None,),
    text="A",
    reasoning=(False,),
    counts=(4, None, 2),
    finish="stop",
    events=3,
)

TOOLS = Sample(
    name="tool calls are output, as name and as pieces of arguments",
    body=(
        b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":'
        b'{"name":"f","arguments":""}}]},"finish_reason":null}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\":"}}]},'
        b'"finish_reason":null}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},'
        b'"finish_reason":null}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'
    )
    + DONE,
    tokens=(None,) * 3,
    reasoning=(False,) * 3,
    finish="tool_calls",
    events=5,
)

NO_DONE = Sample(
    name="no [DONE]: the finish reason is the end",
    body=b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n',
    tokens=(None,),
    text="a",
    reasoning=(False,),
    finish="stop",
    events=1,
)

CRLF = Sample(
    name="CRLF, a byte order mark, ids and retry times, data over several lines, no blank line at the end",
    body=(
        b"\xef\xbb\xbfretry: 10\r\nid: 1\r\nevent: message\r\n"
        b'data: {"choices":[{"index":0,\r\ndata: "delta":{"content":"a"},"finish_reason":null}]}\r\n\r\n'
        b'data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}\r\n\r\n'
        b"data: [DONE]\r\n"
    ),
    tokens=(None, None),
    text="ab",
    reasoning=(False, False),
    finish="stop",
    events=2,
)

LONE_CR = Sample(
    name="lines that end in CR alone",
    body=b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\r\rdata: [DONE]\r\r',
    tokens=(None,),
    text="a",
    reasoning=(False,),
    finish="stop",
    events=1,
)

USAGE_WITH_LAST = Sample(
    name="usage only in the last output event is a total, not that event's tokens",
    body=(
        b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n'
    )
    + DONE,
    tokens=(None, None),
    text="ab",
    reasoning=(False, False),
    counts=(1, None, 2),
    finish="stop",
    events=2,
)

USAGE_TOTAL_EVERYWHERE = Sample(
    name="a usage that is the total in every event counts no event's tokens",
    body=(
        b'data: {"choices":[{"index":0,"text":"a","finish_reason":null}],"usage":{"completion_tokens":2}}\n\n'
        b'data: {"choices":[{"index":0,"text":"b","finish_reason":"stop"}],"usage":{"completion_tokens":2}}\n\n'
    )
    + DONE,
    tokens=(None, None),
    text="ab",
    reasoning=(False, False),
    counts=(None, None, 2),
    finish="stop",
    events=2,
)

WHOLE = Sample(
    name="a whole answer of chat",
    body=(
        b'{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},'
        b'"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}'
    ),
    tokens=(2,),
    text="Hello",
    reasoning=(False,),
    counts=(3, None, 2),
    finish="stop",
)

WHOLE_COMPLETION = Sample(
    name="a whole answer of completions",
    body=b'\n {"choices":[{"text":"Hello","index":0,"logprobs":null,"finish_reason":"length"}]}',
    tokens=(None,),
    text="Hello",
    reasoning=(False,),
    finish="length",
)

LLAMA_CPP_UNEVEN = Sample(
    name="llama.cpp: pings, an empty data line, and no blank line after [DONE]",
    body=(
        b': ping\n\ndata: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\ndata:\n\n'
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]'
    ),
    tokens=(None,),
    text="a",
    reasoning=(False,),
    finish="stop",
    events=2,
)

GOOD = (
    LLAMA_CPP_UNEVEN,
    VLLM,
    VLLM_CONTINUOUS,
    TOKEN_IDS,
    LOGPROBS,
    SGLANG_REASONING,
    VLLM_REASONING,
    LLAMA_CPP,
    LLAMA_CPP_TIMINGS,
    TGI,
    TOOLS,
    NO_DONE,
    CRLF,
    LONE_CR,
    USAGE_WITH_LAST,
    USAGE_TOTAL_EVERYWHERE,
    WHOLE,
    WHOLE_COMPLETION,
)

_TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
_ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
_END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'

BAD: tuple[tuple[str, bytes, Outcome], ...] = (
    (
        "vllm's error in a stream",
        _TOKEN + b'data: {"error": {"message": "boom", "code": 500}}\n\n' + DONE,
        Outcome.ERROR_IN_STREAM,
    ),
    (
        "older vllm's",
        _TOKEN + b'data: {"object":"error","message":"boom","code":400}\n\n' + DONE,
        Outcome.ERROR_IN_STREAM,
    ),
    ("tgi's", _TOKEN + b'event:error\ndata:{"error":"boom","error_type":"overloaded"}\n\n', Outcome.ERROR_IN_STREAM),
    (
        "older llama.cpp's",
        _TOKEN + b'error: {"code":500,"message":"boom","type":"server_error"}\n\n',
        Outcome.ERROR_IN_STREAM,
    ),
    ("an error event that is text", _TOKEN + b"event: error\ndata: boom\n\n", Outcome.ERROR_IN_STREAM),
    (
        "an engine that dropped it",
        b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"abort"}]}\n\n' + DONE,
        Outcome.ERROR_IN_STREAM,
    ),
    ("an error as the whole body", b'{"error":{"message":"boom","type":"x"}}', Outcome.ERROR_IN_BODY),
    ("an error in a list", b'[{"error":{"code":400,"message":"boom"}}]', Outcome.ERROR_IN_BODY),
    ("fastapi's", b'{"detail":"boom"}', Outcome.ERROR_IN_BODY),
    ("an event that is no JSON", _TOKEN + b"data: {oops}\n\n" + _END + DONE, Outcome.BAD_EVENT),
    ("an event that is no object", b"data: 3\n\n" + DONE, Outcome.BAD_EVENT),
    ("a page", b"<html><body>It works!</body></html>", Outcome.BAD_EVENT),
    ("plain text", b"It works!\n", Outcome.BAD_EVENT),
    ("JSON of another kind", b'{"hello": 1}', Outcome.BAD_EVENT),
    ("nothing at all", b"", Outcome.EMPTY),
    ("only [DONE]", DONE, Outcome.EMPTY),
    ("a role and an end", _ROLE + _END + DONE, Outcome.EMPTY),
    ("only comments", b": ping\n\n: ping\n\n", Outcome.EMPTY),
    ("cut after a token", _ROLE + _TOKEN, Outcome.TRUNCATED),
    ("cut after the role", _ROLE, Outcome.TRUNCATED),
    ("cut within an event", _TOKEN + _END[:30], Outcome.TRUNCATED),
    ("a whole answer without an end", b'{"choices":[{"message":{"content":"a"}}]}', Outcome.TRUNCATED),
)
