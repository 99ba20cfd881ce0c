"""A plan's launches: every flag is one that the parser takes, values are the plan's, and check finds nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from servewise.batching.policies import Continuous, Policy, Static
from servewise.check.engines.launch import TRTLLM_KEYS, is_option
from servewise.check.engines.options import options_of
from servewise.check.engines.settings import Settings
from servewise.check.every import check_text
from servewise.deployment.deployment import Deployment, Parallelism
from servewise.deployment.formats import engine_formats
from servewise.hardware.catalogue import load_accelerator
from servewise.modelspec.load import load_model
from servewise.plan.candidates import Candidate
from servewise.plan.flags.every import TARGETS, script_of
from servewise.plan.flags.trtllm import BALANCER
from servewise.plan.flags.wanted import EngineLaunch, Wanted
from servewise.precision import FORMATS

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp")
SPLITS = (
    Parallelism(),
    Parallelism(tensor=4),
    Parallelism(tensor=2, pipeline=2),
    Parallelism(tensor=4, data=2, expert=True, decode_context=2),
    Parallelism(tensor=2, pipeline=2, expert=True, redundant_experts=8),
)
POLICIES: tuple[Policy, ...] = (
    Continuous(max_sequences=64, max_batched_tokens=4096, prefix_cache=True, order="priority"),
    Continuous(max_sequences=512, reserve_output=True, watermark=0.01, swap_blocks=9),
    Continuous(chunked_prefill=False),
    Static(8),
)


def wanted(
    engine: str = "vllm",
    *,
    split: Parallelism = SPLITS[1],
    policy: Policy = POLICIES[0],
    weights: str | None = None,
    kv: str | None = None,
    replicas: int = 1,
) -> Wanted:
    """Llama 3.1 8B on H100, its workload's longest request 5,000 tokens."""
    model, chip = load_model("llama-3.1-8b"), load_accelerator("h100-sxm")
    formats = engine_formats(model, chip, weights=weights and FORMATS[weights], kv=kv and FORMATS[kv])  # type: ignore[arg-type]
    deployment = Deployment(
        model=model, accelerator=chip, weights=formats.weights, kv=formats.kv, activations=formats.activations,
        engine=engine, parallelism=split,
    )  # fmt: skip
    candidate = Candidate(deployment=deployment, policy=policy)
    return Wanted(candidate=candidate, model="org/Llama-8B", longest_tokens=5000, replicas=replicas)


def every() -> Iterator[tuple[str, Wanted]]:
    """Each target over splits, policies, formats and the engine that the plan was made for."""
    for target in TARGETS:
        for engine in ENGINES:
            yield target, wanted(engine)
        for split in SPLITS:
            yield target, wanted(split=split)
        for policy in POLICIES:
            yield target, wanted(policy=policy)
        for weights in ("fp8", "int4", "nvfp4"):
            yield target, wanted(weights=weights)
        for kv in ("fp8", "int8", "nvfp4", "int2"):
            yield target, wanted(kv=kv)
        yield target, wanted(replicas=3)


def texts(launch: EngineLaunch) -> list[str]:
    """What would be run and read."""
    return [script_of(launch), *launch.files.values()]


@pytest.mark.parametrize(("target", "asked"), list(every()))
def test_every_flag_is_one_that_the_parser_takes(target: str, asked: Wanted) -> None:
    """Names and values stand in the list that was written from the engine's own parser or source."""
    launch = TARGETS[target](asked)
    if target == "kubernetes":
        return
    known = options_of(target)
    for at, word in enumerate(launch.argv):
        if is_option(word) and word != "-m":
            spec = known.by_name.get(word.replace("_", "-") if word.startswith("--") else word)
            assert spec is not None, word
            assert not spec.deprecated
            if spec.choices:
                assert launch.argv[at + 1] in spec.choices
    for name, text in launch.files.items():
        assert set(yaml.safe_load(text)) <= TRTLLM_KEYS or name == BALANCER


@pytest.mark.parametrize(("target", "asked"), list(every()))
def test_check_finds_nothing_in_what_plan_emits(target: str, asked: Wanted) -> None:
    """No error and no warning ever; of a plan that takes the model as it is stored, no note either."""
    it = asked.candidate.deployment
    notes = it.kv.bits < 16 or it.weights is not None or it.parallelism.data > 1
    for text in texts(TARGETS[target](asked)):
        found = check_text(text).findings
        assert [each.why for each in found if each.severity != "note" and each.code != "kv-four-bits"] == []
        assert notes or found == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_read_back_is_what_was_planned(engine: str) -> None:
    """Split, sequences, tokens a step, share of memory and context come back from the command line and its file."""
    launch = TARGETS[engine](wanted(engine))
    found = [Settings(each) for text in texts(launch) for each in check_text(text).content.launches]
    command = found[0]

    assert command.whole("sequences") == 64
    assert command.whole("batched") == 4096
    if engine == "llamacpp":
        assert command.whole("context") == 64 * 5120
    else:
        assert command.whole("context") == 5120
        assert command.tensor == 4
        shares = [each.number("utilization") for each in found if each.given("utilization")]
        assert shares == [wanted(engine).utilization]


def test_a_limit_of_one_batch_is_the_plans_over_the_stages() -> None:
    """64 sequences over two stages: TensorRT-LLM holds max_batch_size * pp_size (1.0, ``_util.py``), so 32 of them a
    batch; vLLM's and SGLang's limits are those of the server."""
    split = Parallelism(tensor=2, pipeline=2)
    found = {
        engine: Settings(check_text(script_of(TARGETS[engine](wanted(split=split)))).content.launches[0])
        for engine in ("trtllm", "vllm", "sglang")
    }

    assert {engine: each.whole("sequences") for engine, each in found.items()} == {
        "trtllm": 32,
        "vllm": 64,
        "sglang": 64,
    }


def test_experts_copies_are_each_engines_own_setting() -> None:
    """128 experts and 16 copies on 4 ranks over 2 stages: vLLM counts copies in JSON, SGLang as a number of its own
    beside the ranks of a stage, TensorRT-LLM slots in a file that its config names."""
    asked = wanted(split=Parallelism(tensor=4, pipeline=2, expert=True, redundant_experts=16))
    it = replace(asked.candidate.deployment, model=load_model("qwen3-30b-a3b"))
    asked = replace(asked, candidate=replace(asked.candidate, deployment=it))
    vllm, sglang, trtllm = (TARGETS[each](asked) for each in ("vllm", "sglang", "trtllm"))
    config = yaml.safe_load(trtllm.files["trtllm.yaml"])

    assert {"--enable-expert-parallel", "--enable-eplb"} <= set(vllm.argv)
    assert json.loads(vllm.argv[vllm.argv.index("--eplb-config") + 1]) == {"num_redundant_experts": 16}
    assert sglang.argv[sglang.argv.index("--ep-size") + 1] == "4"
    assert sglang.argv[sglang.argv.index("--ep-num-redundant-experts") + 1] == "16"
    assert yaml.safe_load(trtllm.files[config["moe_config"]["load_balancer"]])["num_slots"] == 144


def test_llamacpp_says_that_it_spreads_no_experts() -> None:
    """Experts whole on ranks, and copies of them, are no option there: a note says so, and none stands elsewhere."""
    plain, spread, copied = (
        TARGETS["llamacpp"](wanted(split=split)).notes for split in (SPLITS[2], SPLITS[3], SPLITS[4])
    )

    assert not any("experts" in note for note in plain)
    assert any("no whole experts" in note and "copies" not in note for note in spread)
    assert any("no whole experts" in note and "copies" in note for note in copied)


def test_lower_precisions_are_asked_for_or_named() -> None:
    """fp8 is a flag; what an engine cannot do is a note."""
    fp8 = TARGETS["vllm"](wanted(weights="fp8", kv="fp8"))
    assert fp8.argv[fp8.argv.index("--quantization") + 1] == "fp8"
    assert fp8.argv[fp8.argv.index("--kv-cache-dtype") + 1] == "fp8"
    assert any("int4" in note for note in TARGETS["vllm"](wanted(weights="int4")).notes)
    assert any("int8 KV" in note for note in TARGETS["sglang"](wanted(kv="int8")).notes)
    assert "q8_0" in TARGETS["llamacpp"](wanted(kv="int8")).argv


def test_what_cannot_be_expressed_is_said() -> None:
    """Static batching, another engine's plan, reserved answers and swaps are notes."""
    static = TARGETS["vllm"](wanted(policy=Static(8))).notes
    other = TARGETS["sglang"](wanted("vllm")).notes
    rest = TARGETS["vllm"](wanted(policy=POLICIES[1])).notes

    assert any("static batching cannot" in note for note in static)
    assert any("made for vllm" in note for note in other)
    assert any("reserves the KV" in note for note in rest)
    assert any("swap" in note for note in rest)


def test_the_manifest_has_what_kubernetes_requires() -> None:
    """Required fields of Deployment and Service (API reference apps/v1, v1), accelerators, probes, shm, no secret."""
    launch = TARGETS["kubernetes"](wanted(replicas=3))
    deployment, service = yaml.safe_load_all(launch.files["vllm-kubernetes.yaml"])
    spec = deployment["spec"]
    pod = spec["template"]["spec"]
    container = pod["containers"][0]

    assert (deployment["apiVersion"], deployment["kind"]) == ("apps/v1", "Deployment")
    assert spec["replicas"] == 3
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 4
    assert {"name", "image", "command", "args", "ports"} <= set(container)
    assert all(isinstance(word, str) for word in (*container["command"], *container["args"]))
    assert container["startupProbe"]["failureThreshold"] * container["startupProbe"]["periodSeconds"] >= 1800
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert mounts["shm"] == "/dev/shm"
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}} in pod["volumes"]
    assert set(mounts) == {each["name"] for each in pod["volumes"]}
    assert all("valueFrom" in each and "value" not in each for each in container["env"])
    assert (service["apiVersion"], service["kind"]) == ("v1", "Service")
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    assert service["spec"]["sessionAffinity"] == "ClientIP"
    assert len(deployment["metadata"]["name"]) <= 63


def test_a_model_name_of_any_kind_makes_a_name_for_kubernetes() -> None:
    """RFC 1123: small letters, digits and dashes, at most 63, none at the ends."""
    for model in ("a/B_c.D", "/models/__x__/", "ü" * 9, "x" * 300):
        launch = TARGETS["kubernetes"](replace(wanted(), model=model))
        name = next(iter(yaml.safe_load_all(launch.files["vllm-kubernetes.yaml"])))["metadata"]["name"]
        assert name == name.lower().strip("-")
        assert name.replace("-", "").isalnum()
        assert name.isascii()
        assert len(name) <= 63


def test_the_manifest_and_its_command_line_are_the_same_words() -> None:
    """What vLLM is given in the pod is what the command line gives it."""
    alone = TARGETS["vllm"](wanted())
    pod = next(iter(yaml.safe_load_all(TARGETS["kubernetes"](wanted()).files["vllm-kubernetes.yaml"])))
    container = pod["spec"]["template"]["spec"]["containers"][0]
    assert [*container["command"], *container["args"]][: len(alone.argv)] == list(alone.argv)


def test_nothing_in_a_name_is_run_or_expanded(tmp_path: Path) -> None:
    """A folder's name with line breaks, quotes and substitutions reaches the engine as it is, and does nothing else."""
    odd = "it's\ntouch pwned\n$(touch pwned)`touch pwned`\x85\u2028$HOME $(VLLM_API_KEY)"
    asked = replace(wanted(), model=odd)
    chip = replace(asked.candidate.deployment.accelerator, title="Mine\nkind: Evil\n#")
    deployment = replace(asked.candidate.deployment, accelerator=chip)
    asked = replace(asked, candidate=replace(asked.candidate, deployment=deployment))
    programs, folder = tmp_path / "bin", tmp_path / "here"
    programs.mkdir()
    folder.mkdir()
    for engine in ENGINES:
        launch = TARGETS[engine](asked)
        program = programs / launch.argv[0]
        program.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
        program.chmod(0o755)
        path = {"PATH": f"{programs}:/usr/bin:/bin"}
        found = subprocess.run(["sh", "-c", script_of(launch)], cwd=folder, env=path, capture_output=True, check=True)
        assert (tuple(found.stdout.decode().split("\0")[:-1]), found.stderr) == (launch.argv[1:], b"")
    assert list(folder.iterdir()) == []
    documents = list(yaml.safe_load_all(TARGETS["kubernetes"](asked).files["vllm-kubernetes.yaml"]))
    assert [each["kind"] for each in documents] == ["Deployment", "Service"]
    container = documents[0]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][0] == odd.replace("$(", "$$(")  # as Kubernetes unescapes it: "$$(x)" is "$(x)"
