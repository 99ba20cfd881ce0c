"""The first words with a server, by hand-made answers: what is wrong is said where it can be mended."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.measure.exchanges import exchange

from servewise.errors import InputError, RunFailed, ServewiseError, UnknownName
from servewise.measure.addressing import target_of
from servewise.measure.ask import Ask
from servewise.measure.bench.probing import dialect_at, engine_of, models_of, patiently, probe
from servewise.measure.exchange import Exchange
from servewise.measure.load.bodies import Form
from servewise.measure.outcome import Outcome

TARGET = target_of("http://host:1", model="m")
FORM = Form(model="m", api="chat")
FINE = exchange([(0.1, 1), (0.2, 1), (0.3, 1), (0.4, 1)], output_tokens=4)


def pages(**found: Any) -> Callable[[str], bytes]:
    """A server's documents by the last word of their path; any other is a 404."""

    def fetch(path: str) -> bytes:
        name = path.rpartition("/")[2]
        if name not in found:
            raise RunFailed(f"{path}: the server answered 404")
        return found[name] if isinstance(found[name], bytes) else json.dumps(found[name]).encode()

    return fetch


def failing(outcome: Outcome, reason: str = "said so") -> Callable[[Ask], Exchange]:
    """A server whose every answer ends so."""
    return lambda _: exchange(outcome=outcome, reason=reason)


def taking(refused: Iterable[str]) -> Callable[[Ask], Exchange]:
    """A server that answers 400 to bodies with any of those fields."""

    def send(ask: Ask) -> Exchange:
        body = json.loads(ask.body)
        return exchange(outcome=Outcome.CLIENT_ERROR, reason="unknown field") if set(refused) & set(body) else FINE

    return send


def test_a_server_that_answers_is_taken_as_it_is() -> None:
    """Every field as wanted, no caveat."""
    found = probe(TARGET, FORM, lambda _: FINE, pages())

    assert (found.form, found.caveats) == (FORM, ())


@pytest.mark.parametrize("refused", [["ignore_eos"], ["seed"], ["stream_options"], ["seed", "stream_options"]])
def test_fields_that_a_server_refuses_are_left_out_and_said(refused: list[str]) -> None:
    """OpenAI's own API refuses ignore_eos, older ones more: the form goes without, with a caveat."""
    found = probe(TARGET, FORM, taking(refused), pages())
    body = json.loads(found.form.body(prompt_of(), 4))

    assert not set(refused) & set(body)
    assert [each.code for each in found.caveats] == ["fields-refused"]


def prompt_of() -> Any:
    """A prompt."""
    from servewise.measure.load.prompt import Prompt

    return Prompt("one")


def test_an_answer_in_one_piece_is_said() -> None:
    """Eight tokens in one event: no TTFT of a token, no TPOT."""
    found = probe(TARGET, FORM, lambda _: exchange([(0.5, None)], output_tokens=8), pages())

    assert [each.code for each in found.caveats] == ["not-streaming"]


@pytest.mark.parametrize(
    ("outcome", "error", "words"),
    [
        (Outcome.REFUSED, RunFailed, "is it running"),
        (Outcome.TLS, InputError, "--insecure"),
        (Outcome.UNAUTHORISED, InputError, "--api-key"),
        (Outcome.REDIRECTED, InputError, "give that address"),
        (Outcome.NOT_FOUND, InputError, "no such endpoint"),
        (Outcome.CLIENT_ERROR, InputError, "refuses the request"),
        (Outcome.PROTOCOL, RunFailed, "no OpenAI-compatible server"),
        (Outcome.EMPTY, RunFailed, "without a token"),
        (Outcome.SERVER_ERROR, RunFailed, "server-error"),
        (Outcome.TIMED_OUT, RunFailed, "timed-out"),
    ],
)
def test_every_way_to_fail_says_its_reason_and_the_way_out(
    outcome: Outcome, error: type[ServewiseError], words: str
) -> None:
    """One line, with the server's own words in it."""
    with pytest.raises(error, match=words) as found:
        probe(TARGET, FORM, failing(outcome), pages())

    assert "said so" in str(found.value)
    assert "\n" not in str(found.value)


def test_a_wrong_model_offers_the_nearest_that_the_server_lists() -> None:
    """A 404 of a server that lists its models, without this one among them."""
    listed = {"data": [{"id": "llama-3-8b"}, {"id": "m2"}, 7, {"id": None}]}
    with pytest.raises(UnknownName, match="did you mean m2"):
        probe(TARGET, FORM, failing(Outcome.NOT_FOUND), pages(models=listed))
    with pytest.raises(InputError, match="no such endpoint"):
        probe(TARGET, FORM, failing(Outcome.NOT_FOUND), pages(models={"data": [{"id": "m"}]}))


def test_a_server_that_answers_to_any_name_is_told() -> None:
    """The figures carry the model's name: it should be the one that is served."""
    found = probe(TARGET, FORM, lambda _: FINE, pages(models={"data": [{"id": "other.gguf"}]}))

    assert [each.code for each in found.caveats] == ["model-not-listed"]
    assert "other.gguf" in found.caveats[0].cure


@pytest.mark.parametrize("page", [b"\xff", b"[" * 99_999, b"[]", b'{"data": 3}', b'{"data": [[]]}', b"null"])
def test_any_list_of_models_is_no_traceback(page: bytes) -> None:
    """Whatever stands there."""
    assert models_of(TARGET, pages(models=page)) == ()
    assert engine_of(TARGET, pages(models=page)) is None


def test_the_engine_is_what_the_server_calls_itself() -> None:
    """By whom its models are owned, and its version; a hosted organisation is no engine."""
    listed = {"data": [{"id": "m", "owned_by": "vllm"}]}

    assert engine_of(TARGET, pages(models=listed, version={"version": "0.32.0+cpu"})) == "vllm 0.32.0+cpu"
    assert engine_of(TARGET, pages(models=listed)) == "vllm"
    assert engine_of(TARGET, pages(models=listed, version={"version": "1\x1b[31m"})) == "vllm"
    assert engine_of(TARGET, pages(models={"data": [{"id": "m", "owned_by": "acme-org"}]})) is None


def test_a_server_that_does_not_name_itself_is_known_by_its_metrics() -> None:
    """TGI's names are TGI; a page of another program, or none, is nobody."""
    assert dialect_at(TARGET, pages(metrics=b"tgi_batch_current_size 3\n")) == "tgi"
    assert dialect_at(TARGET, pages(metrics=b"python_info 1\n")) is None
    assert dialect_at(TARGET, pages()) is None


def test_a_rate_limit_is_waited_for_so_often_and_so_long_at_most() -> None:
    """Four tries at the named waits; a wait of an hour is not waited."""
    tried: list[Ask] = []

    def send(ask: Ask) -> Exchange:
        tried.append(ask)
        return exchange(outcome=Outcome.RATE_LIMITED, retry_after_s=0.0 if len(tried) < 5 else 3_600.0)

    ask = Ask(serial=0, body=b"{}", output_tokens=1)
    assert patiently(send, ask).outcome is Outcome.RATE_LIMITED
    assert len(tried) == 4
    patiently(send, ask)
    assert len(tried) == 5
