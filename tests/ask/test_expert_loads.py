"""The options --expert-load and --redundant-experts: what they take, what is refused, and what answers say of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import invoke

from servewise.ask.deploying import conditions_of, deploy
from servewise.ask.expert_loads import expert_load_named
from servewise.ask.plan import plan
from servewise.ask.size import size
from servewise.ask.steptime import steptime
from servewise.deployment.expert_load import EVEN, USUAL, Counted, Drawn
from servewise.errors import InputError

ON = ("mixtral-8x7b", "h100-sxm")
SPREAD: dict[str, Any] = {"count": 4, "tp": 4, "ep": True}


def counts(folder: Path, *rows: list[float]) -> str:
    """A file as SGLang writes it."""
    path = folder / "counts.json"
    path.write_text(json.dumps({"logical_count": rows}), encoding="utf-8")
    return str(path)


def test_names_of_loads(tmp_path: Path) -> None:
    """Even, a concentration, endless ones being even, a file; nothing is the usual one, objects pass."""
    found = expert_load_named(counts(tmp_path, [1.0, 2.0]))

    assert expert_load_named(None) == USUAL == expert_load_named("dirichlet:0.46")
    assert expert_load_named(" Even ") == EVEN == expert_load_named("dirichlet:inf")
    assert expert_load_named("Dirichlet:2") == Drawn(2.0)
    assert isinstance(found, Counted)
    assert found.tokens == ((1.0, 2.0),)
    assert expert_load_named(found) is found


@pytest.mark.parametrize("text", ["", "uneven", "dirichlet", "dirichlet:", "dirichlet:0", "dirichlet:-1", "zipf:1"])
def test_other_names_are_refused(text: str) -> None:
    """One line says what may stand there."""
    with pytest.raises(InputError, match=r"expert_load: .*(dirichlet|even)"):
        expert_load_named(text)


@pytest.mark.parametrize("option", [{"expert_load": "even"}, {"redundant_experts": 0}])
@pytest.mark.parametrize(
    ("model", "split", "words"),
    [
        ("llama-3.1-8b", SPREAD, "has no routed experts"),
        ("mixtral-8x7b", {"count": 4}, "give --ep"),
        ("mixtral-8x7b", {"ep": True}, "there is one"),
        ("mixtral-8x7b", {"ep": True, "pp": 2}, "there is one"),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    model: str, split: dict[str, Any], words: str, option: dict[str, Any]
) -> None:
    """A dense model, slices of every expert and a single rank have no uneven ranks."""
    with pytest.raises(InputError, match=f"{next(iter(option))}: .*{words}"):
        deploy(model, "h100-sxm", **split, **option)


@pytest.mark.parametrize(
    ("copies", "words"),
    [(2, "8 experts and 2 copies do not divide into 4 ranks; 0, 4"), (-4, "whole number"), (800, "64")],
)
def test_copies_that_ranks_cannot_hold(copies: int, words: str) -> None:
    """All ranks hold as many slots, as vLLM and SGLang want it."""
    with pytest.raises(InputError, match=words):
        deploy(*ON, **SPREAD, redundant_experts=copies)


@pytest.mark.parametrize(
    ("row", "words"),
    [([1.0] * 7, "counts 7 experts, the model has 8"), ([8.0, *[1.0] * 7], "at most 1 in 2")],
)
def test_counts_of_another_model(tmp_path: Path, row: list[float], words: str) -> None:
    """Another number of experts, and more of one than tokens that choose two distinct ones can make."""
    with pytest.raises(InputError, match=words):
        deploy(*ON, **SPREAD, expert_load=counts(tmp_path, row))


def test_more_layers_than_the_model_has(tmp_path: Path) -> None:
    """Steps that stand one below another are not layers."""
    with pytest.raises(InputError, match="counts 33 layers, the model has 32"):
        deploy(*ON, **SPREAD, expert_load=counts(tmp_path, *[[1.0] * 8] * 33))


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (None, "dirichlet:0.46"),
        ("calibrated (h100, vllm)", "dirichlet:0.46"),
        ("ideal", "even (ideal)"),
        ("table (steps.csv)", "as measured"),
        ("calibrated (mine.toml)", "as measured"),
    ],
)
def test_conditions_know_whose_load_an_estimator_has(estimator: str | None, said: str) -> None:
    """The ideal roofline's is even, a measured server's its own."""
    assert conditions_of(deploy(*ON, **SPREAD), load="x", lengths="y", estimator=estimator).experts == said


def test_conditions_name_the_load(tmp_path: Path) -> None:
    """They do where experts are spread over ranks, and only there; the split tells of EPLB."""
    file = counts(tmp_path, [1.0] * 8)
    said = [
        conditions_of(deploy(*ON, **SPREAD, expert_load=each), load="x", lengths="y") for each in (None, "even", file)
    ]
    split = conditions_of(deploy(*ON, count=4), load="x", lengths="y")
    balanced = conditions_of(deploy(*ON, **SPREAD, redundant_experts=4), load="x", lengths="y")

    assert [each.experts for each in said] == [
        "dirichlet:0.46",
        "even",
        "counted (counts.json: 1 x 8 experts, 8 choices)",
    ]
    assert split.experts is None
    assert balanced.parallelism == "TP4 EP EPLB+4"


def test_a_hot_rank_takes_longer(tmp_path: Path) -> None:
    """Prefill with the two hottest experts on one rank takes longer than drawn, that longer than even."""
    hot = counts(tmp_path, [7.0, 7.0, *[1.0 / 3] * 6])
    loads = ("even", "dirichlet:1", hot)
    found = [steptime(*ON, phase="prefill", batch=4, expert_load=each, **SPREAD).rows[0]["step_s"] for each in loads]

    assert found[0] < found[1] < found[2]


CHEAP: dict[str, Any] = {"workload": "chat", "requests": 10, "slo": "ttft_p95<=20s", "counts": 4}


def test_a_plan_weighs_experts_both_ways(tmp_path: Path) -> None:
    """Spread and sliced, with the load that was counted; conditions, titles, caveats and launch say so."""
    load = counts(tmp_path, [1.0] * 8)
    found = plan(*ON, ep=(False, True), expert_load=load, redundant_experts=4, **CHEAP)
    splits = {each["deployment"]["parallelism"] for each in found.result["ranking"]}

    assert splits == {"TP4", "TP4 EP EPLB+4"}
    assert (found.conditions.experts or "").startswith("counted (counts.json")
    assert any("--expert-load counts.json" in each.message for each in found.caveats)


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        ("llama-3.1-8b", {"ep": True}, "ep: llama-3.1-8b has no routed experts"),
        ("mixtral-8x7b", {"expert_load": "even"}, "expert_load: .*give --ep"),
        ("mixtral-8x7b", {"ep": False, "redundant_experts": 4}, "redundant_experts: .*give --ep"),
        ("mixtral-8x7b", {"ep": True, "redundant_experts": 3}, "do not divide into 4 ranks"),
        ("mixtral-8x7b", {"ep": True, "counts": 1, "expert_load": "even"}, "expert_load: .*each replica has one"),
        ("mixtral-8x7b", {"ep": True, "pp": 4, "redundant_experts": 4}, "redundant_experts: .*each replica has one"),
    ],
)
def test_a_plan_refuses_what_it_would_ignore(model: str, options: dict[str, Any], words: str) -> None:
    """Experts of a dense model, and loads or copies of experts that no rank has whole."""
    with pytest.raises(InputError, match=words):
        plan(model, "h100-sxm", **CHEAP | options)


def test_copies_take_memory_from_the_cache() -> None:
    """Four more experts over four ranks: one more on each, 32 layers x 3 x 4096 x 14336 x 2 bytes."""
    plain, copied = (size(*ON, **SPREAD, redundant_experts=each).result for each in (0, 4))

    assert copied["weight_bytes"] - plain["weight_bytes"] == 32 * 3 * 4096 * 14336 * 2


@pytest.mark.parametrize(
    "command",
    [
        ("size",),
        ("steptime",),
        ("simulate", "--workload", "chat", "--requests", "20", "--seeds", "1", "--processes", "1"),
        ("fleet", "--workload", "chat", "--requests", "20", "--seeds", "1", "--processes", "1"),
    ],
)
def test_commands_take_the_option(command: tuple[str, ...]) -> None:
    """Wherever a deployment is asked for: the answer's conditions have it, and a wrong one is one line, exit 2."""
    name, *options = command
    asked = (name, *ON[:1], "--accelerator", ON[1], "--count", "4", "--tp", "4", *options, "--json")
    found = invoke(*asked, "--ep", "--expert-load", "dirichlet:0.2", "--redundant-experts", "4")
    wrong = invoke(*asked, "--ep", "--expert-load", "zipf")

    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["conditions"]["experts"] == "dirichlet:0.2"
    assert wrong.exit_code == 2
    assert len(wrong.stderr.strip().splitlines()) == 1
