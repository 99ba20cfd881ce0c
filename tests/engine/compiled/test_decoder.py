"""The compiled step against the decoder that it stands for, family by family."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from tests.engine.compiled.targets import TARGETS, built
from tests.engine.decoder.feeder import Feeder
from tests.engine.decoder.test_decoder import FAMILIES
from tests.engine.tiny import tiny_checkpoint

from servewise.engine.checkpoint import load_checkpoint
from servewise.engine.compiled.decoder import CompiledDecoder
from servewise.engine.compiled.load import load_compiled, load_model
from servewise.engine.decoder.load import load_decoder
from servewise.engine.quantised.model import QuantisedKv
from servewise.engine.quantised.scheme import KvScheme
from servewise.errors import InputError, UnknownName

WIDE = {**FAMILIES, "many-queries": {"family": "llama", "heads": 14, "kv_heads": 1, "hidden": 224, "head_dim": 16}}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module", params=list(WIDE))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of each family."""
    return tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"), **WIDE[request.param])


def compiled(folder: Path, target: str = TARGETS[0]) -> CompiledDecoder:
    """Its compiled decoder."""
    built(target)
    model = load_compiled(load_checkpoint(folder), target=target).model
    assert isinstance(model, CompiledDecoder)
    return model


def prompt(length: int, seed: int = 0) -> list[int]:
    """Random tokens."""
    return random.Random(seed).choices(range(320), k=length)


@pytest.mark.parametrize("target", TARGETS)
def test_nearer_to_float64_than_pytorch_in_bfloat16(folder: Path, target: str) -> None:
    """The root mean square error of the logits is at most that of the decoder that it stands for."""
    checkpoint, tokens = load_checkpoint(folder), prompt(60)
    exact = Feeder(load_decoder(checkpoint, dtype=torch.float64)).feed({"a": tokens})["a"]
    plain = Feeder(load_decoder(checkpoint, dtype=torch.bfloat16)).feed({"a": tokens})["a"]
    got = Feeder(compiled(folder, target)).feed({"a": tokens})["a"]

    assert got.dtype == torch.float32
    assert (got - exact).pow(2).mean() <= (plain - exact).pow(2).mean()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block_tokens", [16, 5])
def test_no_bit_depends_on_mates_chunks_or_blocks(folder: Path, target: str, block_tokens: int) -> None:
    """Whatever runs beside it, however it is cut, wherever it lies, with one thread or two: the same logits exactly."""
    model = compiled(folder, target)
    rng = random.Random(block_tokens)
    texts = {str(i): prompt(rng.randint(1, 90), seed=i) for i in range(5)}
    alone = {name: Feeder(model, 64, block_tokens).feed({name: tokens})[name] for name, tokens in texts.items()}
    feeder = Feeder(model, 128, block_tokens, seed=3)
    waiting = dict(texts)
    while waiting:
        torch.set_num_threads(rng.randint(1, 2))
        chosen = rng.sample(sorted(waiting), rng.randint(1, len(waiting)))
        new = {name: waiting[name][: rng.choice((1, 1, 3, 17, 50))] for name in chosen}
        for name, got in feeder.feed(new).items():
            end = feeder.lengths[name]
            assert got.equal(alone[name][end - len(got) : end])
            waiting[name] = waiting[name][len(got) :]
        waiting = {name: tokens for name, tokens in waiting.items() if tokens}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain one."""
    return tiny_checkpoint(tmp_path_factory.mktemp("llama"))


def test_a_prefix_of_the_same_step_is_read(llama: Path) -> None:
    """A sequence may share blocks that another writes in the same step (a prefix hit while it is computed)."""
    model, tokens = compiled(llama), list(range(5, 25))
    want = Feeder(model).feed({"a": tokens})["a"]
    feeder = Feeder(model, block_tokens=4)
    shared = [feeder.free.pop() for _ in range(2)]
    feeder.tables = {"a": list(shared), "b": list(shared)}
    feeder.lengths["b"] = 8
    got = feeder.feed({"b": tokens[8:], "a": tokens[:8]})

    assert got["b"].equal(want[8:])


def test_only_wanted_rows(llama: Path) -> None:
    """Logits come for the wanted rows alone, in their order; a step may want none."""
    model, tokens = compiled(llama), prompt(40)
    every = Feeder(model).feed({"a": tokens})["a"]
    for wanted in ([8, 2], []):
        feeder = Feeder(model)
        rows = torch.tensor(wanted, dtype=torch.long)
        some = model.step(replace(feeder.step_of({"a": tokens}), rows_R=rows), feeder.cache)

        assert some.shape == (len(wanted), 320)
        assert some.equal(every[rows])
        assert feeder.feed({"a": [3]})["a"].shape == (1, 320)


def test_early_exit_is_the_decoders(tmp_path: Path) -> None:
    """A model cut after two of three layers is near the decoder cut there, nearer than to the whole."""
    checkpoint = load_checkpoint(tiny_checkpoint(tmp_path, layers=3))
    tokens = prompt(12)
    got = Feeder(compiled(tmp_path).first_layers(2)).feed({"a": tokens})["a"]
    want = Feeder(load_decoder(checkpoint, dtype=torch.float64).first_layers(2)).feed({"a": tokens})["a"]

    assert (got - want).abs().max() < 0.05 * want.abs().max()


def test_what_is_not_there_is_refused(llama: Path) -> None:
    """Tokens, slots, blocks and rows out of range raise, as an index does, and write nothing."""
    model = compiled(llama)
    feeder = Feeder(model)
    step = feeder.step_of({"a": prompt(9)})
    wrong = {
        "tokens_T": torch.full((9,), 320),
        "slots_T": torch.full((9,), 64 * 4),
        "rows_R": torch.tensor([9]),
        "block_tables": ((0, 64, 1),),
        "query_starts": (0, 10),
    }
    for field, value in wrong.items():
        with pytest.raises(IndexError, match="not there"):
            model.step(replace(step, **{field: value}), feeder.cache)  # type: ignore[arg-type]
    with pytest.raises(IndexError, match="not there"):
        model.step(replace(step, block_tables=((0,),)), feeder.cache)
    with pytest.raises(InputError, match="513 tokens, where the context is 512"):
        Feeder(model, blocks=200).feed({"a": prompt(513)})


def test_not_a_number_stays_with_its_sequence(llama: Path) -> None:
    """A broken sequence's logits are not finite; its mates' bits do not change; its cleared blocks serve others."""
    model, good = compiled(llama), [token for token in prompt(20) if token != 7]
    want = Feeder(model).feed({"good": good})["good"]
    broken = compiled(llama)
    broken._decoder.embedding_VE[7] = float("nan")
    feeder = Feeder(broken)
    got = feeder.feed({"good": good, "bad": [1, 7, 3]})

    assert got["good"].equal(want)
    assert not torch.isfinite(got["bad"][1:]).any()
    feeder.feed({"bad": [5], "good": [5]})
    blocks = tuple(feeder.tables.pop("bad"))
    feeder.cache.clear(blocks)  # type: ignore[attr-defined]
    feeder.free += blocks
    assert feeder.feed({"next": good[:3]})["next"].equal(want[:3])


def test_on_another_cache_the_decoder_computes(llama: Path) -> None:
    """On a cache of fewer bits the logits are near those on the model's own."""
    model = compiled(llama)
    tokens = prompt(30)
    narrow = QuantisedKv(model._decoder, KvScheme(bits=8))
    step = Feeder(narrow)
    got = model.step(step.step_of({"a": tokens}), step.cache)
    want = Feeder(model).feed({"a": tokens})["a"]

    assert (got - want).abs().max() < 0.1 * want.abs().max()


def test_the_choice_of_kernels(llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """auto takes the compiled ones where they compute, else PyTorch with the reason; what cannot be had is refused."""
    built(TARGETS[0])
    checkpoint = load_checkpoint(llama)
    odd = load_checkpoint(tiny_checkpoint(tmp_path, hidden=48, head_dim=12))

    assert load_model(checkpoint).kernels.startswith("compiled kernels, A")
    assert load_model(checkpoint, kernels="torch").kernels == "PyTorch (asked for)"
    assert "not float32 on cpu" in load_model(checkpoint, dtype=torch.float32).kernels
    assert "not a multiple of" in load_model(odd).kernels
    with pytest.raises(InputError, match=r"compiled kernels: .*not a multiple of"):
        load_model(odd, kernels="compiled")
    with pytest.raises(UnknownName, match="fast"):
        load_model(checkpoint, kernels="fast")
