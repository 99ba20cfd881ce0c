"""What the page's addresses give, view by view; the command line that is shown gives the same document."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import anyio
import pytest
from starlette.testclient import TestClient
from starlette.types import Message
from tests.app.serving import page
from tests.cli.running import invoke, process

from servewise.app.views import VIEWS

SMALL = {
    "traffic": {"workload": "own", "requests": "20", "rate": "1,4", "policy": "vllm,static", "estimator": "ideal"},
    "prefix": {},
    "plan": {"workload": "azure-conv", "requests": "40", "accelerators": "h100-sxm", "counts": "1", "carry": "1"},
}
LOG = "\n".join(
    json.dumps({"arrival_s": second, "prompt_tokens": 64, "output_tokens": 8, "prompt": [1] * 32 + [second + 2] * 32})
    for second in range(20)
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A page that was started with two runs."""
    folder = tmp_path_factory.mktemp("runs")
    for name, policy in (("first", "static"), ("second", "continuous")):
        found = invoke(
            "simulate", "llama-3-8b", "--accelerator", "h100-sxm", "--workload", "azure-conv", "--requests", "30",
            "--rate", "2", "--estimator", "ideal", "--policy", policy, "--run-dir", str(folder / name),
        )  # fmt: skip
        assert found.exit_code == 0, found.output
    with page(folder / "first", folder / "second") as started:
        yield started


def run(client: TestClient, view: str, values: dict[str, str]) -> dict[str, object]:
    """Start a slow view's run and wait for its end."""
    found = client.post(f"/{view}/job", params=values).json()
    until = time.monotonic() + 60
    while found["state"] == "running" and time.monotonic() < until:
        time.sleep(0.05)
        found = client.get(f"/jobs/{found['job']}").json()
    assert isinstance(found, dict)
    return found


def values_of(client: TestClient, view: str) -> dict[str, str]:
    """Values with which a view's answer takes little time; prompts are uploaded."""
    if view == "runs":
        return {"runs": "run:0,run:1"}
    if view == "prefix":
        return {"log": client.post("/uploads?name=log.jsonl", content=LOG.encode()).json()["reference"]}
    return SMALL.get(view, {})


@pytest.mark.parametrize("view", VIEWS)
def test_the_command_line_gives_the_same_document(
    client: TestClient, view: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line that a view shows, run with --json in a folder with its files, prints what the view exports."""
    values = values_of(client, view)
    if VIEWS[view].slow:
        assert run(client, view, values)["state"] == "done"
    html = client.get(f"/{view}/answer", params=values).text
    typed = shlex.split(unescape(re.search(r'<code id="command">(.*?)</code>', html)[1]))  # type: ignore[index]
    for reference in re.findall(r'href="/uploads/([^"]+)"', html):
        (tmp_path / reference.split("/")[1]).write_bytes(client.get(f"/uploads/{reference}").content)
    monkeypatch.chdir(tmp_path)
    printed = invoke(*typed[1:], "--json")
    assert printed.exit_code == 0, printed.output
    assert json.loads(printed.stdout) == client.get(f"/{view}/answer.json", params=values).json()


def test_the_command_line_as_a_process(client: TestClient) -> None:
    """The same by a process of its own, byte for byte."""
    typed = "size llama-3.1-8b --accelerator h100-sxm --engine vllm --context 2048 --json"
    printed = process(*typed.split())
    assert printed.stdout == client.get("/fit/answer.json").text


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_can_be_taken_along(client: TestClient, view: str) -> None:
    """Every chart is a whole SVG file without the page's variables; every CSV has the document's numbers."""
    values = values_of(client, view)
    if VIEWS[view].slow:
        run(client, view, values)
    html = client.get(f"/{view}/answer", params=values).text
    svgs, csvs = (re.findall(rf'href="(/{view}/[^"]+\.{ending}[^"]*)"', html) for ending in ("svg", "csv"))
    assert len(svgs) == html.count("<figure>") > 0
    for link in svgs:
        text = client.get(unescape(link)).text
        assert ElementTree.fromstring(text).tag.endswith("svg")
        assert "var(--" not in text
    assert csvs
    for link in csvs:
        rows = list(csv.DictReader(io.StringIO(client.get(unescape(link)).text)))
        assert rows, link


def test_csv_holds_the_documents_numbers(client: TestClient) -> None:
    """A list in CSV is the document's, number by number, in SI units."""
    document = client.get("/steptime/answer.json").json()
    rows = list(csv.DictReader(io.StringIO(client.get("/steptime/rows.csv").text)))
    assert [float(row["step_s"]) for row in rows] == [row["step_s"] for row in document["result"]["rows"]]


def test_the_same_address_gives_the_same_page(client: TestClient) -> None:
    """All of a view's state stands in its address: loaded twice, it is the same page."""
    values = {"model": "llama-3-70b", "count": "4", "weights": "fp8", "context": "4096"}
    one, two = (client.get("/fit", params=values).text for _ in range(2))
    assert one == two
    for value in ('value="llama-3-70b"', 'value="4"', '<option value="fp8" selected>', 'value="4096"'):
        assert value in one


def test_a_page_without_script_has_its_answer(client: TestClient) -> None:
    """Where no script runs, the form sent by GET brings the whole page, its answer in it."""
    html = client.get("/fit", params={"model": "llama-3-8b", "policy": "x"}).text
    assert "llama-3-8b fits on 1 x NVIDIA H100" in html
    assert "Not understood in the address: policy." in html


@pytest.mark.parametrize(
    ("view", "values", "field", "said"),
    [
        ("fit", {"model": "llama-3-9b"}, "model", "did you mean llama-3-8b"),
        ("fit", {"accelerator": "h1000"}, "accelerator", "did you mean"),
        ("fit", {"count": "abc"}, "count", "is no whole number"),
        ("fit", {"count": "0"}, "count", "must be a whole number from 1"),
        ("fit", {"memory_utilization": "1.5"}, "memory_utilization", "must be a number above 0"),
        ("fit", {"memory": "80 bananas"}, "memory", "is no memory size"),
        ("fit", {"weights": "int17"}, "weights", "is none of"),
        ("fit", {"model": ""}, "model", "nothing is given"),
        ("steptime", {"batch": "1,,2"}, "batch", "empty place"),
        ("speculation", {"acceptance": "2"}, "acceptance", "must be a number from 0 to 1"),
        ("traffic", {"policy": "psychic"}, "policy", "is none of"),
    ],
)
def test_wrong_input_is_a_line_at_its_field(
    client: TestClient, view: str, values: dict[str, str], field: str, said: str
) -> None:
    """A mistake is one line beside the field that it is about, in the part's reply and in the whole page."""
    reply = client.get(f"/{view}/answer", params=values)
    assert reply.status_code == 422
    assert reply.json()["field"] == field
    assert said in reply.json()["line"]
    assert "\n" not in reply.json()["line"]
    whole = client.get(f"/{view}", params=values)
    assert whole.status_code == 422
    assert re.search(rf'id="{field}-error" role="alert">[^<]+<', whole.text)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"slots": "8", "policy": "vllm"}, "slots"),
        ({"rate": "-1"}, "rate"),
        ({"tpot": "soon"}, "tpot"),
        ({"ttft": "later"}, "ttft"),
    ],
)
def test_a_run_that_cannot_be_is_a_line_too(client: TestClient, values: dict[str, str], field: str) -> None:
    """What only the command itself finds wrong comes back from its process with its field."""
    found = run(client, "traffic", {"requests": "20", **values})
    assert found["state"] == "failed"
    assert found["field"] == field
    assert found["line"]


def test_markup_in_an_address_stays_text(client: TestClient) -> None:
    """Nothing that stands in an address or a file's name is markup on the page."""
    html = client.get("/fit", params={"model": '"><script>alert(1)</script>', "<b>": "1"}).text
    assert "<script>alert" not in html
    assert "<b>" not in html


def test_a_run_is_asked_for_first(client: TestClient) -> None:
    """A simulation that has not run is not started by reading: a link from elsewhere costs nothing."""
    assert client.get("/traffic/answer.json", params={"requests": "33"}).status_code == 409


def test_what_is_not_there_is_not_found(client: TestClient) -> None:
    """Views, charts, parts, runs and files that are not there are 404."""
    for path in ("/nothing", "/fit/9.svg", "/fit/nothing.csv", "/jobs/0", "/uploads/0/x", "/static/../server.py"):
        assert client.get(path).status_code == 404, path


def test_an_upload_that_is_broken_off_is_no_defect(client: TestClient) -> None:
    """A tab that is closed in the middle of an upload leaves no traceback on the terminal and no file."""
    told: list[Message] = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"{", "more_body": True}]
    sent: list[Message] = []

    async def receive() -> Message:
        return told.pop()

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:8010"), (b"origin", b"http://127.0.0.1:8010")]
    scope = {"type": "http", "method": "POST", "path": "/uploads", "headers": headers, "query_string": b"name=a.json"}
    anyio.run(client.app, scope, receive, send)
    assert sent[0]["status"] == 400
