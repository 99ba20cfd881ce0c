"""Files that a person gives to the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.app.serving import page

from servewise.app.uploads import MOST_BYTES, Uploads, name_of
from servewise.errors import InputError


@pytest.fixture
def uploads() -> Iterator[Uploads]:
    """A folder of uploads, gone after the test."""
    found = Uploads(["runs/a"])
    yield found
    found.close()


def test_a_file_comes_back_as_it_was(uploads: Uploads) -> None:
    """What was kept under a reference lies there whole, under its own name."""
    reference = uploads.keep("my trace.csv", b"a,b\n1,2\n")
    path = Path(uploads.path(reference))
    assert path.read_bytes() == b"a,b\n1,2\n"
    assert path.name == name_of(reference) == "my-trace.csv"


@pytest.mark.parametrize("name", ["../../x.json", "/etc/x.json", "..\\x.json", ".x.json", "\0x.json", "é.json"])
def test_no_name_leaves_the_folder(uploads: Uploads, name: str) -> None:
    """A name with folders, dots or odd characters in it becomes a plain one."""
    path = Path(uploads.path(uploads.keep(name, b"{}")))
    assert path.parent.parent.name.startswith("servewise-app-")
    assert "/" not in path.name
    assert path.name[0].isalnum()


def test_too_large_and_unknown_kinds_are_refused(uploads: Uploads) -> None:
    """A file over the limit, or of a kind that nothing reads, is one clear line."""
    with pytest.raises(InputError, match="is over 32 MiB"):
        uploads.keep("a.json", b" " * (MOST_BYTES + 1))
    with pytest.raises(InputError, match="kind that nothing reads"):
        uploads.keep("a.exe", b"")


def test_a_config_is_called_by_its_kind(uploads: Uploads) -> None:
    """config.json says nothing as a name: the model's kind stands for it, on the page and in the command."""
    assert name_of(uploads.keep("config.json", b'{"model_type": "llama"}')) == "my-llama.json"
    assert name_of(uploads.keep("config.json", b"no json")) == "pasted.json"


def test_a_run_stands_for_its_place(uploads: Uploads) -> None:
    """Runs that the page was started with are referred to by number; one that was not is an error."""
    assert uploads.path("run:0") == "runs/a"
    with pytest.raises(InputError, match="started with 1 runs"):
        uploads.path("run:1")


def test_files_are_gone_after_closing() -> None:
    """Nothing that was uploaded outlives the page."""
    uploads = Uploads()
    path = Path(uploads.path(uploads.keep("a.json", b"{}")))
    uploads.close()
    assert not path.exists()


def test_a_body_over_the_limit_is_cut_short() -> None:
    """The server stops reading at the limit and says so."""
    with page() as client:
        reply = client.post("/uploads?name=a.json", content=b" " * (MOST_BYTES + 1))
    assert reply.status_code == 413
    assert "32 MiB" in reply.json()["line"]


def test_an_uploaded_model_answers() -> None:
    """A config.json that was uploaded is sized as the same file on the command line."""
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 128256,
        "torch_dtype": "bfloat16", "tie_word_embeddings": False, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5,
    }  # fmt: skip
    with page() as client:
        reference = client.post("/uploads?name=config.json", content=json.dumps(config).encode()).json()["reference"]
        found = client.get("/fit/answer.json", params={"model": reference}).json()
    assert found["result"]["parameters"] == 8_030_261_248  # as published for Llama-3-8B
    assert found["conditions"]["model"] == "my-llama"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"model_type": "llama"}', b"[" * 100_000])
def test_a_bad_config_is_a_line_at_its_field(content: bytes) -> None:
    """Whatever is uploaded as a model, the mistake is told at the model's field, and nothing breaks."""
    with page() as client:
        reference = client.post("/uploads?name=config.json", content=content).json()["reference"]
        reply = client.get("/fit/answer", params={"model": reference})
    assert reply.status_code == 422
    assert reply.json()["field"] == "model"
    assert "\n" not in reply.json()["line"]


def test_a_file_that_is_gone_says_so() -> None:
    """An address from before the page was started anew asks for the file again."""
    with page() as client:
        reply = client.get("/fit/answer", params={"model": f"upload:{'0' * 16}/my-llama.json"})
    assert reply.json() == {
        "field": "model",
        "line": "my-llama.json is no longer here (the page was started anew); upload it again",
    }
