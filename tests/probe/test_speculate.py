"""The speculation probe on a tiny checkpoint: what its figures must add up to, and what it refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from tests.cli.running import invoke
from tests.engine.tiny import tiny_checkpoint

from servewise.answer import Answer
from servewise.ask.probe_speculate import probe_speculate
from servewise.engine.checkpoints.opening import open_checkpoint
from servewise.engine.checkpoints.writing_gguf import write_gguf
from servewise.errors import InputError
from servewise.report.figures import figures_of
from servewise.report.tables import tables_of

torch.set_num_threads(1)
PROMPTS = ["the cat sat on the mat", "a model that is served", "1 2 3 4 5 1 2 3", "the dog ate the hat", "the mat"]
SMALL: dict[str, Any] = {
    "max_k": 2,
    "batch": (1, 2),
    "max_tokens": 12,
    "repeats": 2,
    "speed_prompts": 2,
    "dtype": "float64",
    "threads": 1,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random checkpoint."""
    return str(tiny_checkpoint(tmp_path_factory.mktemp("tiny") / "model", layers=3))


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """A file of five prompts."""
    path = tmp_path / "prompts.txt"
    path.write_text("\n".join(PROMPTS) + "\n")
    return path


def ask(model: str, prompts: Path, draft: str, **options: Any) -> Answer:
    """The probe at its smallest."""
    return probe_speculate(model, draft=draft, prompts=prompts, **(SMALL | options))


@pytest.fixture(scope="module")
def answer(model: str, tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """The probe with the first two of three layers as the draft."""
    path = tmp_path_factory.mktemp("prompts") / "prompts.txt"
    path.write_text("\n".join(PROMPTS))
    return ask(model, path, "exit:2")


def test_every_batch_and_length_has_a_row_and_plain_decoding_is_one(answer: Answer) -> None:
    """Rows are batches x K from 0; K = 0 is 1 by definition, predicted and measured, with one token a step."""
    rows = answer.result["rows"]

    assert [(row["batch"], row["k"]) for row in rows] == [(b, k) for b in (1, 2) for k in (0, 1, 2)]
    assert all(row["speedup_predicted_timed"] > 0 for row in rows)
    for row in rows[::3]:
        assert row["speedup_predicted"] == row["speedup"] == row["tokens_per_verification"] == 1.0


def test_in_float64_all_outputs_are_plain_decodings(answer: Answer) -> None:
    """Greedy outputs are the same at every K and batch, and no caveat says otherwise."""
    assert {row["identical_outputs"] for row in answer.result["rows"]} == {1.0}
    assert "near-ties" not in {caveat.code for caveat in answer.caveats}


def test_the_prediction_is_tokens_over_cost(answer: Answer) -> None:
    """Predicted speed-up is tokens x plain step / (draft + verification); at the longest K tokens are the table's."""
    survival = [row["survival"] for row in answer.result["acceptance_by_position"]]
    for row in answer.result["rows"]:
        plain = next(each for each in answer.result["rows"] if each["batch"] == row["batch"])
        for which in ("", "_timed"):
            cost = (row["draft_s"] + row["verify_s"]) / plain["verify_s"]
            expected = row[f"tokens_per_verification_predicted{which}"] / cost
            assert row[f"speedup_predicted{which}"] == pytest.approx(expected)
        if row["k"] == len(survival):
            assert row["tokens_per_verification_predicted"] == pytest.approx(1 + sum(survival))


def test_timed_runs_keep_the_tokens_that_were_foreseen_for_them(answer: Answer) -> None:
    """In float64 a replay is the run: tokens a verification agree, but for each reply's last, shortened drafts."""
    for row in answer.result["rows"]:
        foreseen = row["tokens_per_verification_predicted_timed"]
        assert row["tokens_per_verification"] == pytest.approx(foreseen, rel=0.1)


def test_counts_hold_every_verification(answer: Answer) -> None:
    """accepted <= reached <= offered <= asked, and a model draft always has a token to offer."""
    for row in answer.result["acceptance_by_position"]:
        assert row["accepted"] <= row["reached"] <= row["offered"] == row["asked"]
        assert row["survival"] == pytest.approx(row["accepted"] / row["asked"], abs=0.1)


def test_k_by_measured_acceptance_is_measured_too(answer: Answer) -> None:
    """Each batch has the speed-up of K chosen round by round, with its interval from two repeats."""
    for row in answer.result["by_batch"]:
        assert row["adaptive_speedup"] > 0
        assert row["ci95_adaptive_speedup"][0] <= row["adaptive_speedup"] <= row["ci95_adaptive_speedup"][1]


def test_tables_and_figure_show_every_row(answer: Answer) -> None:
    """The terminal's three tables hold a row a position, a batch and K, and a batch; the chart has its table."""
    found = {table.title: table for table in tables_of(answer.command, answer.result)}

    assert len(found["Acceptance by position"].cells) == SMALL["max_k"]
    assert len(found["Speed-up by draft length"].cells) == 6
    assert len(found["Best draft length by batch"].cells) == 2
    assert [figure.title for figure in figures_of(answer)] == ["Speed-up by draft length"]


def test_the_command_gives_one_json_document(model: str, prompts: Path) -> None:
    """CONTRACT's envelope on stdout; wrong input is one line and exit code 2."""
    asked = ["probe", "speculate", model, "--draft", "ngram", "--prompts", str(prompts), "--threads", "1"]
    found = invoke(*asked, "--acceptance-only", "--max-k", "2", "--max-tokens", "8", "--json")
    wrong = invoke(*asked[:4], "self:99", *asked[5:])

    assert found.exit_code == 0
    assert json.loads(found.stdout)["schema"] == "servewise.probe-speculate/1"
    assert (wrong.exit_code, wrong.stderr.count("\n")) == (2, 1)


def test_the_target_as_its_own_draft_is_always_accepted(model: str, prompts: Path) -> None:
    """A draft model that is the target survives at every position, and every interval is exactly 1."""
    result = ask(model, prompts, model, acceptance_only=True).result

    assert [row["survival"] for row in result["acceptance_by_position"]] == [1.0, 1.0]
    assert result["acceptance_by_position"][0]["ci95_survival"] == (1.0, 1.0)
    assert "rows" not in result


@pytest.mark.parametrize("draft", ["ngram", "ngram:1-2", "self:4", "self:3"])
def test_other_drafts_are_surveyed_too(model: str, prompts: Path, draft: str) -> None:
    """n-grams offer at most what is asked; fewer bits are surveyed like any model."""
    found = ask(model, prompts, draft, batch=2, repeats=1).result

    assert found["draft"] == draft
    assert all(0 < row["speedup_predicted"] < 4 for row in found["rows"])


def test_a_survey_goes_on_where_it_was_stopped(model: str, prompts: Path, tmp_path: Path) -> None:
    """With its file, nothing is measured again: the answer is the same; a line cut off is measured again."""
    part = tmp_path / "part.jsonl"
    first = ask(model, prompts, "ngram", resume=part)
    again = ask(model, prompts, "ngram", resume=part)
    lines = part.read_text().splitlines(keepends=True)
    part.write_text("".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2])
    mended = ask(model, prompts, "ngram", resume=part)

    assert again.dumps() == first.dumps()
    assert len(part.read_text().splitlines()) == len(lines)
    assert mended.result["acceptance_by_position"] == first.result["acceptance_by_position"]


def test_another_surveys_file_is_refused(model: str, prompts: Path, tmp_path: Path) -> None:
    """A file of other settings, or of no survey at all, is refused by name."""
    part = tmp_path / "part.jsonl"
    ask(model, prompts, "ngram", acceptance_only=True, resume=part)
    with pytest.raises(InputError, match="max_k"):
        ask(model, prompts, "ngram", acceptance_only=True, max_k=3, resume=part)
    for text in ("hello\n", "[1]\n", '{"schema": 1}\n{"key": 3}\n', '{"a"'):
        part.write_text(text + "\n")
        with pytest.raises(InputError):
            ask(model, prompts, "ngram", acceptance_only=True, resume=part)


def test_prompts_may_be_conversations(model: str, tmp_path: Path) -> None:
    """JSON lines of prompts and of messages are read, and their number is reported."""
    path = tmp_path / "prompts.jsonl"
    rows = [{"prompt": "the cat"}, {"messages": [{"role": "user", "content": "the dog"}], "id": 3}]
    path.write_text("\n\n".join(map(json.dumps, rows)))

    assert ask(model, path, "ngram", acceptance_only=True).result["prompts"] == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no prompt"),
        ("{", "line 1: is no JSON"),
        ('{"prompt": "a"}\n{"prompt": 3}', "line 2: prompt must be text"),
        ('{"prompt": "a", "messages": []}', "either prompt or messages"),
        ('{"messages": [{"role": "user"}]}', "role and a content"),
        ('{"messages": []}', "must be a list"),
        ("the cat\n" + "the cat " * 400, "prompt 2 has"),
    ],
)
def test_prompts_that_cannot_be_read_are_refused(model: str, tmp_path: Path, text: str, said: str) -> None:
    """Each with the file, the line and what is wrong; a prompt beyond the context too."""
    path = tmp_path / "prompts.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        ask(model, path, "ngram", acceptance_only=True)


def test_a_prompt_file_that_is_no_text_is_refused(model: str, tmp_path: Path) -> None:
    """Bytes, a folder and a missing file are one clear line."""
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for name in ("bytes", "missing", "."):
        with pytest.raises(InputError):
            ask(model, tmp_path / name, "ngram")


@pytest.mark.parametrize(
    "draft", ["", "self", "self:5", "self:x", "exit:3", "exit:0", "ngram:4-2", "ngram:0-2", "none"]
)
def test_drafts_that_cannot_be_are_refused(model: str, prompts: Path, draft: str) -> None:
    """Keywords without a number, bits and layers that cannot be, models that are not there."""
    with pytest.raises(InputError):
        ask(model, prompts, draft, acceptance_only=True)


def test_a_draft_of_another_vocabulary_is_refused(model: str, prompts: Path, tmp_path: Path) -> None:
    """Draft and target must have the same tokens."""
    other = tiny_checkpoint(tmp_path / "other", layers=1, vocabulary=321)
    with pytest.raises(InputError, match="vocabulary"):
        ask(model, prompts, str(other))


def test_a_draft_with_another_tokenizer_is_refused(model: str, prompts: Path, tmp_path: Path) -> None:
    """As many tokens are not the same tokens: a draft that cuts the prompts otherwise is refused."""
    other = tiny_checkpoint(tmp_path / "other", layers=1)
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    tokenizer["model"]["merges"] = []
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(InputError, match="other tokens"):
        ask(model, prompts, str(other))


@pytest.mark.parametrize(
    "options", [{"max_k": 0}, {"max_tokens": 3}, {"batch": 0}, {"temperature": -1.0}, {"repeats": 0}, {"dtype": "int9"}]
)
def test_settings_out_of_range_are_refused(model: str, prompts: Path, options: dict[str, Any]) -> None:
    """Each by its name."""
    with pytest.raises(InputError):
        ask(model, prompts, "ngram", **options)


def test_a_draft_of_a_quantised_checkpoint_says_so(model: str, prompts: Path, tmp_path: Path) -> None:
    """Weights that come from 8-bit blocks make an 8-bit draft look too good: a caveat says it, for it alone."""
    pytest.importorskip("gguf")
    path = tmp_path / "tiny.gguf"
    write_gguf(open_checkpoint(Path(model)), path, "q8_0")
    asked = {draft: ask(str(path), prompts, draft, acceptance_only=True) for draft in ("self:8", "exit:2")}
    told = {draft: "quantised-checkpoint" in {c.code for c in each.caveats} for draft, each in asked.items()}

    assert told == {"self:8": True, "exit:2": False}


def test_sampled_outputs_are_not_compared(model: str, prompts: Path) -> None:
    """At a temperature outputs differ by design: no share of identical ones is told, and no caveat."""
    answer = ask(model, prompts, "exit:2", temperature=1.0, batch=2, repeats=1)

    assert all("identical_outputs" not in row for row in answer.result["rows"])
    assert "near-ties" not in {caveat.code for caveat in answer.caveats}


def test_an_emulated_draft_says_so(model: str, prompts: Path) -> None:
    """3 bits have no kernel: the caveat says that the draft costs what the target costs."""
    answer = ask(model, prompts, "self:3", acceptance_only=True)

    assert "emulated-draft" in {caveat.code for caveat in answer.caveats}
    assert math.isfinite(answer.result["acceptance_by_position"][0]["survival"])
