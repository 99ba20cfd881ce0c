"""A tiny tokenizer of SentencePiece's kind (Llama 2): spaces as U+2581, unknown characters as byte pieces."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXT = ["the cat sat on the mat and the dog ate the hat", "a model that is served well answers at once", "1 2 3 4 5"]
SPECIAL = ("<unk>", "<s>", "</s>")
SPACE = "\u2581"
TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + message['content'] + "
    "' [/INST]' }}{% else %}{{ ' ' + message['content'] + eos_token }}{% endif %}{% endfor %}"
)


def write_spm_tokenizer(folder: Path, vocabulary: int = 320) -> None:
    """tokenizer.json as transformers converts Llama 2's, trained on ``TEXT``: 3 special, 256 byte, the rest pieces."""
    learned = Tokenizer(models.BPE())
    learned.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    learned.pre_tokenizer = pre_tokenizers.Split(SPACE, behavior="merged_with_next")  # no piece spans two words
    learned.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=vocabulary - 259, show_progress=False))
    pieces = json.loads(learned.to_str())["model"]
    order = sorted(pieces["vocab"], key=pieces["vocab"].get)
    singles = [text for text in order if len(text) == 1]
    tokens = [
        *SPECIAL,
        *(f"<0x{byte:02X}>" for byte in range(256)),
        *(text for text in order if len(text) > 1),
        *singles,
    ]
    merges = [tuple(each) for each in pieces["merges"]]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={text: index for index, text in enumerate(tokens)},
            merges=merges,
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    tokenizer.normalizer = learned.normalizer
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken(each, special=True, normalized=False) for each in SPECIAL])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"tokenizer_class": "PreTrainedTokenizerFast"}))
