"""Results of llama-benchy (``--save-result FILE --format json``).

Format: schemas/benchmark_report_schema.json of llama-benchy (MIT), versions 0.1 to 0.4, read 2026-11. It keeps no
requests; of each it keeps TTFT (``e2e_ttft`` [ms]) and decode speed (``tg_req_throughput`` [tokens/s], (tokens - 1) /
(end - first)), whose inverse is TPOT. Its total speed, ``tg_throughput``, is of the decode phase alone: it leaves the
prompt's time and each first token out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from servewise.caveats import Caveat
from servewise.measure.peers.fields import Row, as_number, inner, number, table, whole, words
from servewise.measure.peers.found import NO_REQUESTS, PeerRun, common_caveats, conditions, load_words, of_values, told
from servewise.records.columns import RequestColumns

CLIENT = "llama-benchy"
DECODE_ONLY = Caveat(
    "peer-decode-speed",
    "its tokens/s are of the decode phase alone, without the prompt's time: higher than what a server delivers",
    "compare TTFT and TPOT, not throughput",
)


def is_llama_benchy(document: object) -> bool:
    """Whether a JSON value is such a result."""
    benches = document.get("benchmarks") if isinstance(document, Mapping) else None
    first = benches[0] if isinstance(benches, list) and benches else None
    return isinstance(first, Mapping) and "is_context_prefill_phase" in first and "concurrency" in first


def read(document: Row, where: str) -> tuple[PeerRun, ...]:
    """The run in each benchmark that generates (the filling of a context is none)."""
    benches = [table(each, f"{where}: benchmark {place}") for place, each in enumerate(document["benchmarks"])]
    kept = [each for each in benches if each.get("is_context_prefill_phase") is not True]
    return tuple(_run(document, each, where) for each in kept)


def _run(document: Row, bench: Row, where: str) -> PeerRun:
    streams = whole(bench, "concurrency", where) or 1
    prompt = whole(bench, "prompt_size", where) + whole(bench, "context_size", where)
    output = whole(bench, "response_size", where)
    ttft, speed = _values(bench, "e2e_ttft", where), _values(bench, "tg_req_throughput", where)
    completed = len(ttft)
    summary = told(
        completed=completed,
        failed=0,
        output_tokens_per_s=number(inner(bench, "tg_throughput"), "mean", where),
        prompt_tokens=prompt * completed,
        output_tokens=output * completed,
        ttft=of_values([each / 1e3 for each in ttft]),
        tpot=of_values([1 / each for each in speed if each > 0]),
    )
    return PeerRun(
        client=CLIENT,
        conditions=conditions(
            model=words(document, "model"), load=load_words(streams, None), lengths=f"{prompt} tokens in, {output} out"
        ),
        requests=RequestColumns(),
        told=summary,
        concurrency=streams,
        caveats=(*common_caveats(CLIENT, streams), NO_REQUESTS, DECODE_ONLY),
    )


def _values(bench: Row, name: str, where: str) -> list[float]:
    found = inner(bench, name).get("values")
    values = found if isinstance(found, list) else []
    return [value for each in values if math.isfinite(value := as_number(each, f"{where}: {name}"))]
