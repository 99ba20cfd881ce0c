"""The questions about local models: the list, writing one in another format."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.engine.tiny import tiny_checkpoint

from servewise.ask.models import fetch_model, models, write_model
from servewise.engine.checkpoints.library import Places
from servewise.errors import InputError


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A models folder with one tiny llama in it."""
    tiny_checkpoint(tmp_path / "models" / "tiny")
    return Places(tmp_path / "models", tmp_path / "hub")


def test_each_model_is_listed_with_its_facts(places: Places) -> None:
    """Name, family, format, dtype, parameters (counted by hand), context and place."""
    layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128 + 2 * 64

    row = next(each for each in models(places=places).result["models"] if each["name"] == "tiny")

    assert (row["family"], row["format"], row["stored"], row["context_tokens"]) == ("llama", "safetensors", "f32", 512)
    assert row["parameters"] == 2 * 320 * 64 + 2 * layer + 64
    assert row["size_bytes"] > 4 * row["parameters"]
    assert (row["path"], row["refused"]) == (str(places.models / "tiny"), None)


def test_a_model_that_the_engine_refuses_says_why(places: Places) -> None:
    """It stays in the list, with the reason and as a caveat."""
    config = places.models / "tiny" / "config.json"
    config.write_text(config.read_text().replace('"llama"', '"gemma3"'))

    answer = models(places=places)

    row = next(each for each in answer.result["models"] if each["name"] == "tiny")
    assert "architecture 'gemma3' is not computed" in row["refused"]
    assert "model-refused" in [each.code for each in answer.caveats]


@pytest.mark.parametrize(
    ("format_", "dtype", "rounded"),
    [("safetensors", "bf16", True), ("gguf", "q8_0", True), ("gguf", "f32", False), ("safetensors", "f32", False)],
)
def test_writing_answers_with_what_was_written(
    format_: str, dtype: str, rounded: bool, places: Places, tmp_path: Path
) -> None:
    """The answer names place, source and size, and warns where the weights were rounded."""
    target = tmp_path / "out" / "model"

    answer = write_model("tiny", target, format=format_, dtype=dtype, places=places)

    assert (answer.command, answer.result["path"], answer.result["dtype"]) == ("models-write", str(target), dtype)
    assert answer.result["source_stored"] == "f32"
    assert answer.result["size_bytes"] == sum(
        each.stat().st_size for each in (target.iterdir() if target.is_dir() else [target])
    )
    assert ("rounded" in [each.code for each in answer.caveats]) == rounded


def test_dtypes_that_a_format_lacks_are_refused_before_any_work(places: Places, tmp_path: Path) -> None:
    """The message lists each format's dtypes."""
    with pytest.raises(
        InputError, match="no format 'safetensors' with dtype 'q4_0'; safetensors: bf16, f16, f32; gguf"
    ):
        write_model("absent", tmp_path / "x", dtype="q4_0", places=places)


def test_fetching_what_is_there_says_so(places: Places) -> None:
    """A model of the models folder is not fetched again."""
    assert fetch_model("tiny", places=places).result["fetched"] is False
