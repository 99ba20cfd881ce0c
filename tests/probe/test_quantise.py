"""``probe quantise``: figures that follow from definitions, rows that resume, every mistake one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file, save_file
from tests.cli.running import invoke
from tests.engine.decoder.feeder import Feeder
from tests.engine.tiny import tiny_checkpoint
from torch.nn import functional

from servewise.answer import Answer
from servewise.ask.probe_quantise import probe_quantise
from servewise.engine.checkpoint import load_checkpoint
from servewise.engine.decoder.load import load_decoder
from servewise.engine.quantised.grid import Grid, round_to_grid
from servewise.engine.quantised.matrix import round_to_nearest
from servewise.engine.quantised.model import QuantisedKv, quantise
from servewise.engine.quantised.scheme import KvScheme, Scheme
from servewise.engine.step import Model
from servewise.errors import InputError, ServewiseError
from servewise.probe.quantise import bench
from servewise.probe.quantise.bench import Bench
from servewise.probe.quantise.log import Row
from servewise.probe.quantise.passages import built_in, passages
from servewise.probe.quantise.quality import bootstrapped
from servewise.probe.quantise.settings import Setting, settings_of, shapes_of, stored_bytes
from servewise.report.tables import tables_of

torch.set_num_threads(1)
SENTENCE = "the cat sat on the mat and a model that is served well answers at once while the dog ate the hat"
WORDS = SENTENCE.split()
TEXT = " ".join(WORDS[(i * 7 + i // 5) % len(WORDS)] for i in range(300))
OTHER = " ".join(WORDS[(i * 5 + i // 3) % len(WORDS)] for i in range(300))
LENGTH, SEQUENCES = 32, 4
SMALL: dict[str, Any] = {
    "sequences": SEQUENCES,
    "length": LENGTH,
    "groups": ("channel", "32"),
    "bits": (8, 3),
    "dtype": "float64",
    "threads": 1,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random checkpoint and two texts beside it."""
    path = tmp_path_factory.mktemp("probe")
    tiny_checkpoint(path / "model")
    (path / "eval.txt").write_text(TEXT)
    (path / "other.txt").write_text(OTHER)
    return path


def ask(folder: Path, *, model: str = "model", **options: Any) -> Answer:
    """The probe at its smallest."""
    texts = {"evaluation": folder / "eval.txt", "calibration": folder / "other.txt"}
    return probe_quantise(folder / model, **(SMALL | texts | options))


@pytest.fixture(scope="module")
def answer(folder: Path) -> Answer:
    """Every target, two widths, two groups, both grids, methods and kinds of keys."""
    return ask(folder)


def by_hand(folder: Path, changed: Model, chunk: int) -> tuple[float, float, float]:
    """Mean KL, agreement and surprise from PyTorch's own losses, each sequence fed alone."""
    checkpoint = load_checkpoint(folder / "model")
    plain = load_decoder(checkpoint, dtype=torch.float64)
    tokens = checkpoint.tokenizer().encode(TEXT)
    count = (len(tokens) - 1) // LENGTH
    found = []
    for index in (i * count // SEQUENCES for i in range(SEQUENCES)):
        window = tokens[index * LENGTH : index * LENGTH + LENGTH + 1]
        feeders = [Feeder(model, block_tokens=16) for model in (plain, changed)]
        reference, ours = (
            torch.cat([each.feed({"a": window[i : i + chunk]})["a"] for i in range(0, LENGTH, chunk)])
            for each in feeders
        )
        kl = functional.kl_div(ours.log_softmax(1), reference.softmax(1), reduction="batchmean")
        same = (ours.argmax(1) == reference.argmax(1)).double().mean()
        found.append((float(kl), float(same), float(functional.cross_entropy(ours, torch.tensor(window[1:])))))
    kls, sames, surprises = np.array(found).T
    return float(kls.mean()), float(sames.mean()), float(surprises.mean())


def row_of(answer: Answer, **case: Any) -> dict[str, Any]:
    """The one row of a case."""
    found = [row for row in answer.result["rows"] if all(row[key] == value for key, value in case.items())]
    assert len(found) == 1, case
    row: dict[str, Any] = found[0]
    return row


def test_weights_are_judged_as_defined(folder: Path, answer: Answer) -> None:
    """KL(reference || model), agreement and perplexity equal PyTorch's own losses on the quantised decoder."""
    decoder = load_decoder(load_checkpoint(folder / "model"), dtype=torch.float64)
    changed = quantise(decoder, Scheme(weights=Grid(bits=3, group=32, symmetric=False)))
    kl, same, surprise = by_hand(folder, changed, LENGTH)
    row = row_of(answer, target="weights", bits=3, group=32, grid="asymmetric", method="rtn")
    assert row["kl"] == pytest.approx(kl, rel=1e-9)
    assert row["top1_agreement"] == pytest.approx(same, abs=1e-12)
    assert row["perplexity"] == pytest.approx(np.exp(surprise), rel=1e-9)


@pytest.mark.parametrize("keys", ["channel", "token"])
def test_the_cache_is_judged_as_when_decoding(folder: Path, answer: Answer, keys: str) -> None:
    """KV figures equal those of decoding token by token with the quantised cache."""
    decoder = load_decoder(load_checkpoint(folder / "model"), dtype=torch.float64)
    kl, same, _ = by_hand(folder, QuantisedKv(decoder, KvScheme(bits=3, keys=keys)), 1)
    row = row_of(answer, target="kv", bits=3, group="channel", grid="asymmetric", keys=keys)
    assert row["kl"] == pytest.approx(kl, rel=1e-6)
    assert row["top1_agreement"] == pytest.approx(same, abs=1e-12)


def test_every_setting_has_its_row_with_its_interval(answer: Answer) -> None:
    """2 widths x 2 groups x 2 grids x 2 methods, the cache by both keys (a head holds one group), activations once."""
    rows = answer.result["rows"]
    counts = [sum(row["target"] == target for row in rows) for target in ("weights", "kv", "activations")]
    assert counts == [16, 8, 1]
    for row in rows:
        for name in ("kl", "top1_agreement", "perplexity", "perplexity_ratio"):
            low, high = row[f"ci95_{name}"]
            assert low <= row[name] <= high
        assert row["kl"] > 0


def test_more_bits_cost_less(answer: Answer) -> None:
    """At 8 bits every setting is nearer the reference than the same one at 3 bits."""
    for row in answer.result["rows"]:
        if row["bits"] == 8 and row["target"] != "activations":
            case = {key: row[key] for key in ("target", "group", "grid", "method", "keys")}
            assert row["kl"] < row_of(answer, bits=3, **case)["kl"]


def test_a_checkpoint_on_a_grid_cannot_lose_on_it(folder: Path) -> None:
    """Where the checkpoint's weights lie on 4 bits in groups of 32, that setting's KL is 0, and others' is not."""
    source, target = folder / "model", folder / "on-grid"
    target.mkdir()
    for file in source.iterdir():
        if file.suffix != ".safetensors":
            (target / file.name).write_bytes(file.read_bytes())
    weights = load_file(source / "model.safetensors")
    grid = Grid(bits=4, group=32, symmetric=False)
    kept = {name: round_to_grid(each, grid) if "_proj" in name else each for name, each in weights.items()}
    save_file(kept, target / "model.safetensors", metadata={"format": "pt"})
    found = ask(folder, model="on-grid", bits=4, groups=("32",), targets=("weights",), dtype="float32")
    assert row_of(found, grid="asymmetric", method="rtn")["kl"] < 1e-9
    assert row_of(found, grid="asymmetric", method="gptq")["top1_agreement"] == 1
    assert row_of(found, grid="symmetric", method="rtn")["kl"] > 1e-6


def test_bytes_are_those_that_the_engine_stores(folder: Path, answer: Answer) -> None:
    """Weights: the packed matrices and 16 bits for the tables; cache: the quantised cache's own bytes a token."""
    checkpoint = load_checkpoint(folder / "model")
    config, decoder = checkpoint.config, load_decoder(checkpoint)
    grid = Grid(bits=3, group=32, symmetric=False)
    matrices = sum(round_to_nearest(torch.zeros(shape), grid).stored_bytes for shape in shapes_of(config))
    tables = 2 * config.vocabulary * config.hidden * (1 if config.tied else 2)
    assert row_of(answer, target="weights", bits=3, group=32, grid="asymmetric", method="rtn")["weight_bytes"] == (
        matrices + tables
    )
    blocks = 64
    for keys in ("channel", "token"):
        model = QuantisedKv(decoder, KvScheme(bits=3, keys=keys))
        recent = blocks * 16 * config.kv_heads * config.head_dim * 4 * config.layers if keys == "channel" else 0
        per_token = (model.new_cache(blocks, 16).bytes - recent) / (blocks * 16)
        row = row_of(answer, target="kv", bits=3, group="channel", grid="asymmetric", keys=keys)
        assert row["kv_bytes_per_token"] == pytest.approx(per_token, abs=1)


def test_the_cheapest_is_the_smallest_under_the_threshold(folder: Path, answer: Answer) -> None:
    """Of the rows whose KL's upper end is within the threshold, none of that target has fewer bytes."""
    threshold = answer.result["threshold_kl"]
    for best in answer.result["cheapest"]:
        size = "kv_bytes_per_token" if best["target"] == "kv" else "weight_bytes"
        rivals = [row for row in answer.result["rows"] if row["target"] == best["target"]]
        within = [row[size] for row in rivals if row["ci95_kl"][1] <= threshold]
        assert best["ci95_kl"][1] <= threshold
        assert best[size] == min(within)


def test_a_threshold_that_nothing_keeps_is_said(folder: Path) -> None:
    """No cheapest setting then, and a caveat that names the best."""
    found = ask(folder, targets=("weights",), methods=("rtn",), bits=2, threshold=1e-9)
    assert found.result["cheapest"] == []
    assert "threshold-missed" in {caveat.code for caveat in found.caveats}


def test_the_studys_table_stands_beside(answer: Answer) -> None:
    """The study's KL and agreement at 8 and 3 bits, for weights and cache, beside the rows of its own scheme."""
    table = {(row["target"], row["bits"]): row for row in answer.result["study"]}
    assert {key: (row["study_kl"], row["study_top1_agreement"]) for key, row in table.items()} == {
        ("weights", 8): (0.00007, 0.997),
        ("weights", 3): (0.113, 0.875),
        ("KV cache", 8): (0.00001, 0.998),
        ("KV cache", 3): (0.011, 0.959),
    }
    ours = row_of(answer, target="kv", bits=3, group="channel", grid="symmetric", keys="token")
    assert table["KV cache", 3]["kl"] == ours["kl"]


def test_a_plain_checkpoint_has_no_caveat_about_its_grid(answer: Answer) -> None:
    """float32 weights are not said to come from a quantised format."""
    assert "quantised-checkpoint" not in {caveat.code for caveat in answer.caveats}


def test_a_run_broken_off_goes_on_where_it_was(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in the file are not measured again, a line cut short is, and the answer is that of one run."""
    log = tmp_path / "rows.jsonl"
    options: dict[str, Any] = {"targets": ("weights",), "methods": ("rtn",)}
    whole = ask(folder, resume=log, **options)
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:-2]) + lines[-2][:40])
    measured: list[str] = []
    plain = Bench.row

    def noted(self: Bench, setting: Setting) -> Row:
        measured.append(setting.name)
        return plain(self, setting)

    monkeypatch.setattr(Bench, "row", noted)
    again = ask(folder, resume=log, **options)
    assert len(measured) == 2
    drop = "measuring_s"
    for a, b in zip(whole.result["rows"], again.result["rows"], strict=True):
        assert {key: a[key] for key in a if key != drop} == {key: b[key] for key in b if key != drop}


@pytest.mark.parametrize("change", [{"length": 16}, {"seed": 1}, {"evaluation": "other.txt"}, {"dtype": "float32"}])
def test_rows_of_another_measurement_are_refused(folder: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    """A log that was measured with another text, length, seed or dtype is not mixed in."""
    log = tmp_path / "rows.jsonl"
    options: dict[str, Any] = {"targets": ("activations",)}
    ask(folder, resume=log, **options)
    change = {key: folder / value if key == "evaluation" else value for key, value in change.items()}
    with pytest.raises(InputError, match="another measurement"):
        ask(folder, resume=log, **options, **change)


@pytest.mark.parametrize(
    "content", [b"not json\n", b"[1, 2]\n", b"\xff\xfe\n", b'{"schema": "x"}\n', b"[" * 100_000 + b"\n"]
)
def test_a_file_that_is_no_log_is_refused(folder: Path, tmp_path: Path, content: bytes) -> None:
    """Nothing is overwritten and the error names the file."""
    log = tmp_path / "rows.jsonl"
    log.write_bytes(content)
    with pytest.raises(InputError, match=r"rows\.jsonl"):
        ask(folder, resume=log, targets=("activations",))
    assert log.read_bytes() == content


def test_tasks_that_the_model_answers_match_and_others_do_not(folder: Path, tmp_path: Path) -> None:
    """Exact match is the share of tasks whose greedy continuation begins with the answer: here two of four."""
    checkpoint = load_checkpoint(folder / "model")
    tokenizer, decoder = checkpoint.tokenizer(), load_decoder(checkpoint, dtype=torch.float64)
    tasks: list[dict[str, str]] = []
    for prompt in ("the cat sat", "a model that", "1 2 3", "the dog ate"):
        feeder = Feeder(decoder, block_tokens=16)
        said: list[int] = []
        logits = feeder.feed({"a": tokenizer.encode(prompt)})["a"]
        while len(said) < 12:
            said.append(int(logits[-1].argmax()))
            logits = feeder.feed({"a": said[-1:]})["a"]
        text = tokenizer.decode(said).strip()
        tasks.append({"prompt": prompt, "answer": text[:6].strip() if len(tasks) < 2 else "never said"})
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in tasks))
    found = ask(folder, task=path, targets=("activations",))
    assert found.result["reference"]["exact_match"] == 0.5
    assert 0 <= row_of(found, target="activations")["exact_match"] <= 0.5


@pytest.mark.parametrize(
    "line",
    ["", "nonsense", "[]", '{"prompt": "a"}', '{"prompt": "a", "answer": ""}', '{"prompt": 1, "answer": "b"}'],
)
def test_a_wrong_task_is_named_by_its_line(folder: Path, tmp_path: Path, line: str) -> None:
    """A task file without tasks, or with a line that is none, is one clear error."""
    path = tmp_path / "tasks.jsonl"
    path.write_text(line)
    with pytest.raises(InputError, match=r"tasks\.jsonl"):
        ask(folder, task=path, targets=("activations",))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"targets": ("weight",)}, "weights"),
        ({"methods": ("gtpq",)}, "gptq"),
        ({"grids": ("lopsided",)}, "symmetric"),
        ({"keys": ("head",)}, "channel"),
        ({"bits": 9}, "bits"),
        ({"bits": 1}, "bits"),
        ({"groups": ("big",)}, "groups"),
        ({"groups": ("4",)}, "groups"),
        ({"dtype": "int8"}, "dtype"),
        ({"threshold": 0.0}, "threshold"),
        ({"sequences": 1}, "sequences"),
        ({"length": 10_000}, "length"),
        ({"length": 400}, "too few"),
        ({"evaluation": "/nowhere.txt"}, "nowhere"),
        ({"seed": -1}, "seed"),
        ({"device": "tpu"}, "device"),
        ({"targets": ("kv",), "groups": ("64",)}, "no setting"),
    ],
)
def test_what_cannot_be_measured_is_one_clear_line(folder: Path, options: dict[str, Any], words: str) -> None:
    """Unknown names, numbers out of range, texts too short and missing files name what is wrong."""
    with pytest.raises(ServewiseError, match=words) as caught:
        ask(folder, **options)
    assert "\n" not in str(caught.value)


def test_a_reference_beyond_memory_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probabilities of too many positions at once are refused with the cure, before anything is computed."""
    monkeypatch.setattr(bench, "MOST_REFERENCE_BYTES", 1000)
    with pytest.raises(InputError, match="fewer or shorter sequences"):
        ask(folder, targets=("activations",))


def test_text_that_is_no_text_is_refused(folder: Path, tmp_path: Path) -> None:
    """A binary file as the evaluation text is an input error."""
    path = tmp_path / "eval.bin"
    path.write_bytes(b"\x00\xff\xfe" * 100)
    with pytest.raises(InputError, match="not UTF-8"):
        ask(folder, evaluation=path)


def test_intervals_hold_the_mean_about_as_often_as_they_say() -> None:
    """Over 400 samples of 16 normal values the interval holds the true mean in 88 to 97 of 100 cases."""
    rng = np.random.default_rng(0)
    held = 0
    for seed in range(400):
        found = bootstrapped(rng.normal(1.0, 1.0, 16), seed)
        held += found.low <= 1.0 <= found.high
    assert 0.88 <= held / 400 <= 0.97


class Bytes:
    """A tokenizer of one token a byte; a prompt begins with ``begin``."""

    def __init__(self, *begin: int) -> None:
        self.begin = begin

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def prompt(self, text: str) -> list[int]:
        return [*self.begin, *self.encode(text)]

    def decode(self, tokens: Any) -> str:
        return bytes(tokens).decode()

    def chat(self, messages: Any) -> list[int]:
        raise NotImplementedError


def test_passages_are_spread_over_the_text() -> None:
    """Sequences do not overlap, each target follows its input, and a few of many reach into the text's second half."""
    text = built_in("evaluation")
    found = passages(text, Bytes(), length=100, most=5, where="text")
    assert len(found) == 5
    whole = text.encode()
    for each in found:
        assert bytes((*each.inputs, each.targets[-1])) in whole
        assert each.inputs[1:] == each.targets[:-1]
    assert whole.index(bytes(found[-1].inputs)) > len(whole) // 2
    assert built_in("calibration")[:200] not in text


def test_each_passage_begins_as_the_model_expects() -> None:
    """Where a prompt begins with a token of its own (Llama's), every sequence does, within its length."""
    found = passages(TEXT, Bytes(7), length=50, most=3, where="text")
    for each in found:
        assert each.inputs[0] == 7
        assert len(each.inputs) == len(each.targets) == 50
        assert bytes(each.targets).decode() in TEXT


def test_tied_and_untied_tables_are_counted_once_and_twice(folder: Path) -> None:
    """Activations leave all weights at 16 bits: two bytes for each of the matrices' and the tables' values."""
    config = load_checkpoint(folder / "model").config
    values = sum(rows * columns for rows, columns in shapes_of(config)) + 2 * config.vocabulary * config.hidden
    assert not config.tied
    assert stored_bytes(Setting(target="activations", bits=8), config, tables=False, block_tokens=16) == 2 * values


def test_groups_beyond_a_head_are_left_out(folder: Path) -> None:
    """Groups of KV values as wide as a head, or wider, are the head's own scale and not measured twice."""
    config = load_checkpoint(folder / "model").config
    groups = (None, config.head_dim * 2, config.head_dim, config.head_dim // 2)
    found = settings_of(("kv",), (4,), groups, ("symmetric",), ("rtn",), ("token",), config)
    assert [each.group for each in found] == [None, config.head_dim // 2]


def test_the_command_gives_one_document_and_a_table(folder: Path) -> None:
    """``servewise probe quantise --json`` prints one JSON document; its tables name every setting."""
    options = ["--eval", str(folder / "eval.txt"), "--bits", "8", "--groups", "channel", "--target", "weights,kv"]
    result = invoke(
        "probe", "quantise", str(folder / "model"), *options, "--method", "rtn", "--length", "32", "--sequences", "2",
        "--threads", "1", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["schema"] == "servewise.probe-quantise/1"
    assert {"few-sequences"} <= {caveat["code"] for caveat in document["caveats"]}
    tables = tables_of("probe-quantise", document["result"])
    assert len(tables[-1].cells) == len(document["result"]["rows"]) == 6
