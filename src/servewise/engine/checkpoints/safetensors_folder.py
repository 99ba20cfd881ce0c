"""A checkpoint in a folder as the Hugging Face hub has it: config.json, safetensors in one file or in shards.

All headers are read and checked at once, so that a missing shard or a wrong shape shows before any work; weights are
read one by one when they are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from servewise.engine.checkpoints.confined import confined
from servewise.engine.checkpoints.expected import HEAD, Shape, expected_weights
from servewise.engine.checkpoints.hf_config import config_of_folder, read_object
from servewise.engine.checkpoints.tokenizer import TextTokenizer
from servewise.engine.checkpoints.tokenizer_folder import tokenizer_of_folder
from servewise.engine.config import DecoderConfig
from servewise.errors import InputError
from servewise.modelspec.checkpoint import INDEX, SINGLE

STORED = {"BF16": "bf16", "F16": "f16", "F32": "f32", "F64": "f64"}
FETCH = "fetch the checkpoint again"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
IGNORED = ("rotary_emb.inv_freq",)  # a buffer that older Llama checkpoints carry; it follows from rope_theta


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """Where a weight lies, and its shape and type by the shard's header."""

    shard: Path
    shape: Shape
    dtype: str


class SafetensorsFolder:
    """The checkpoint in ``folder``; opening it reads the config and every shard's header, not the weights."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        self.config: DecoderConfig = config_of_folder(folder)
        self._shapes = expected_weights(self.config)
        self._stored = _checked(_stored_weights(folder), self._shapes, folder, self.config)

    @property
    def stored(self) -> str:
        """The type of most weights: bf16, f16, f32 or f64."""
        return Counter(STORED[self._stored[name].dtype] for name in self._shapes).most_common(1)[0][0]

    def names(self) -> Sequence[str]:
        """The names of all weights."""
        return tuple(self._shapes)

    def weight(self, name: str) -> Tensor:
        """One weight as it is stored; raises InputError for a name that the checkpoint does not have."""
        if name not in self._shapes:
            raise InputError(f"has no weight {name[:120]!r}", where=str(self.path))
        with opened_shard(self._stored[name].shard) as file:
            tensor: Tensor = file.get_tensor(name)
        return tensor

    def tokenizer(self) -> TextTokenizer:
        """The tokenizer in the folder; raises InputError where it does not suit the vocabulary."""
        return tokenizer_of_folder(self.path, self.config)


@contextmanager
def opened_shard(shard: Path) -> Iterator[Any]:
    """The safetensors file, its header checked against its length; every failure is one InputError that names it."""
    if not shard.is_file():
        raise InputError("this shard is missing", where=str(shard), hint=FETCH)
    try:
        with safe_open(str(shard), framework="pt") as file:
            yield file
    except (SafetensorError, OSError, ValueError) as error:
        what = f"is no whole safetensors file ({_reason(error)})"
        raise InputError(what, where=str(shard), hint=FETCH) from None


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:160]


def _stored_weights(folder: Path) -> dict[str, StoredWeight]:
    """Every weight of the folder by the headers of its shards, held against the index where there is one."""
    index = _index(folder)
    shards = sorted(set(index.values())) if index else [confined(folder, SINGLE)]
    if not index and not shards[0].is_file():
        raise _nothing_to_read(folder)
    found: dict[str, StoredWeight] = {}
    for shard in shards:
        for name, weight in _header(shard).items():
            if name in found:
                raise InputError(f"has the weight {name[:120]!r}, as {found[name].shard.name} does", where=str(shard))
            found[name] = weight
    for name, shard in index.items():
        if name not in found or found[name].shard != shard:
            raise InputError(f"lacks the weight {name[:120]!r}, which {INDEX} puts there", where=str(shard), hint=FETCH)
    return found


def _index(folder: Path) -> dict[str, Path]:
    """Weight -> shard of ``model.safetensors.index.json``; empty where there is none. Shards lie in the folder."""
    path = folder / INDEX
    if not path.is_file():
        return {}
    shards = read_object(confined(folder, INDEX)).get("weight_map")
    if not isinstance(shards, Mapping) or not shards:
        raise InputError("lacks the object weight_map", where=str(path), hint=FETCH)
    for name, shard in shards.items():
        if not isinstance(shard, str) or Path(shard).name != shard or not shard.endswith(".safetensors"):
            raise InputError(f"puts {name[:120]!r} into {shard!r:.80}, which is no shard's name", where=str(path))
    places = {shard: confined(folder, shard) for shard in set(shards.values())}
    return {name: places[shard] for name, shard in shards.items()}


def _header(shard: Path) -> dict[str, StoredWeight]:
    found: dict[str, StoredWeight] = {}
    with opened_shard(shard) as file:
        for name in file.keys():  # noqa: SIM118 (safe_open is no mapping)
            part = file.get_slice(name)
            found[name] = StoredWeight(shard, tuple(part.get_shape()), str(part.get_dtype()))
    return found


def _checked(
    stored: dict[str, StoredWeight], expected: Mapping[str, Shape], folder: Path, config: DecoderConfig
) -> dict[str, StoredWeight]:
    """``stored``, if it holds just the weights that the config asks for."""
    missing = [name for name in expected if name not in stored]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        listing = next(path for path in (folder / INDEX, folder / SINGLE) if path.is_file())
        raise InputError(f"lacks {missing[0]}{more}, which config.json asks for", where=str(listing), hint=FETCH)
    spare = {HEAD} if config.tied else set()
    for name, each in stored.items():
        if name in expected:
            _check_one(name, each, expected[name])
        elif name not in spare and not name.endswith(IGNORED):
            what = f"has the weight {name[:120]!r}, which a {config.family} of this config.json does not use"
            raise InputError(what, where=str(each.shard), hint="config.json and weights are of two models")
    return stored


def _check_one(name: str, weight: StoredWeight, shape: Shape) -> None:
    if weight.shape != shape:
        what = f"{name} has the shape {list(weight.shape)}, where config.json makes it {list(shape)}"
        raise InputError(what, where=str(weight.shard), hint="config.json and weights are of two models")
    if weight.dtype not in STORED:
        what = f"{name} is stored as {weight.dtype}, which is not read; {', '.join(STORED)} are"
        raise InputError(what, where=str(weight.shard))


def _nothing_to_read(folder: Path) -> InputError:
    pickled = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    if not pickled:
        what = f"has neither {SINGLE} nor {INDEX}"
        return InputError(what, where=str(folder), hint="give a folder with safetensors, or a GGUF file")
    return pickle_refused(folder / pickled[0])


def pickle_refused(path: Path) -> InputError:
    """The refusal of a pickled checkpoint: loading one can run any code that it carries."""
    cure = "take the model's safetensors, or convert with transformers: from_pretrained(...).save_pretrained(...)"
    return InputError("is a pickle, which can run code when loaded, so it is not read", where=str(path), hint=cure)
