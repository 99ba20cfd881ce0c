"""A checkpoint as a folder that transformers, vLLM and SGLang load: config, tokenizer, safetensors in shards."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from servewise.engine.checkpoints.gguf_file import GgufFile
from servewise.engine.checkpoints.hf_config import CONFIG, GENERATION, generation_config, hf_config
from servewise.engine.checkpoints.safetensors_folder import SafetensorsFolder
from servewise.engine.checkpoints.tokenizer_folder import SETTINGS, TOKENIZER, TOKENIZER_FILES
from servewise.engine.checkpoints.writing import DTYPES, cast, written_whole
from servewise.errors import UnknownName
from servewise.modelspec.checkpoint import INDEX, SINGLE

SHARD_BYTES = 5 * 10**9
TORCH_NAMES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}
Progress = Callable[[int, int], None]


def write_safetensors(
    checkpoint: GgufFile | SafetensorsFolder,
    folder: Path,
    dtype: str = "bf16",
    *,
    shard_bytes: int = SHARD_BYTES,
    progress: Progress | None = None,
) -> None:
    """Write ``checkpoint`` as ``folder``: weights in ``dtype`` (bf16, f16, f32), shards of at most ``shard_bytes``.

    Nothing is left behind where that fails; raises InputError where ``folder`` is there already or f16 cannot hold a
    weight. At most one shard is in memory at a time.
    """
    if dtype not in DTYPES:
        raise UnknownName("dtype", dtype, DTYPES, where="safetensors", hint=f"one of {', '.join(DTYPES)}")
    checkpoint.tokenizer()  # refuses now what would make the folder useless
    with written_whole(folder) as part:
        part.mkdir()
        _write_json(part / CONFIG, hf_config(checkpoint.config, TORCH_NAMES[dtype]))
        _write_tokenizer(checkpoint, part)
        _write_weights(checkpoint, part, dtype, shard_bytes, progress)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_tokenizer(checkpoint: GgufFile | SafetensorsFolder, folder: Path) -> None:
    """The tokenizer's own files where the source is a folder, else those that its metadata make."""
    if isinstance(checkpoint, SafetensorsFolder):
        for name in (*TOKENIZER_FILES, GENERATION):
            if (checkpoint.path / name).is_file():
                shutil.copyfile(checkpoint.path / name, folder / name)
    else:
        tokenizer = checkpoint.tokenizer()
        (folder / TOKENIZER).write_text(tokenizer.backend.to_str(pretty=False), encoding="utf-8")
        _write_json(folder / SETTINGS, _settings(checkpoint))
    if not (folder / GENERATION).is_file():
        _write_json(folder / GENERATION, generation_config(checkpoint.config))


def _settings(checkpoint: GgufFile) -> dict[str, Any]:
    """tokenizer_config.json: special tokens, chat template, and the class that reads tokenizer.json as it stands."""
    tokenizer = checkpoint.tokenizer()
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": checkpoint.config.max_context_tokens,
        "clean_up_tokenization_spaces": False,
        **tokenizer.special,
    }
    return settings | ({"chat_template": tokenizer.template.source} if tokenizer.template else {})


def _write_weights(
    checkpoint: GgufFile | SafetensorsFolder, folder: Path, dtype: str, shard_bytes: int, progress: Progress | None
) -> None:
    """Shards under temporary names, since their count stands in the final ones; then the index, where there are two."""
    shards: list[list[str]] = []
    total = 0
    for number, shard in enumerate(_shards(_cast_weights(checkpoint, dtype, progress), shard_bytes)):
        save_file(shard, str(folder / f"part-{number}"), metadata={"format": "pt"})
        shards.append(list(shard))
        total += sum(each.nbytes for each in shard.values())
    names = _shard_names(len(shards))
    for number, name in enumerate(names):
        (folder / f"part-{number}").rename(folder / name)
    if len(names) > 1:
        places = {weight: name for name, weights in zip(names, shards, strict=True) for weight in weights}
        _write_json(folder / INDEX, {"metadata": {"total_size": total}, "weight_map": places})


def _shard_names(count: int) -> list[str]:
    if count == 1:
        return [SINGLE]
    return [f"model-{number:05d}-of-{count:05d}.safetensors" for number in range(1, count + 1)]


def _cast_weights(
    checkpoint: GgufFile | SafetensorsFolder, dtype: str, progress: Progress | None
) -> Iterator[tuple[str, Tensor]]:
    names = checkpoint.names()
    for done, name in enumerate(names, start=1):
        yield name, cast(name, checkpoint.weight(name), DTYPES[dtype])
        if progress is not None:
            progress(done, len(names))


def _shards(weights: Iterator[tuple[str, Tensor]], most_bytes: int) -> Iterator[dict[str, Tensor]]:
    """The weights in order, in groups of at most ``most_bytes`` (a larger weight is a group of its own)."""
    shard: dict[str, Tensor] = {}
    held = 0
    for name, weight in weights:
        if shard and held + weight.nbytes > most_bytes:
            yield shard
            shard, held = {}, 0
        shard[name] = weight
        held += weight.nbytes
    yield shard
