"""Chat templates against transformers' own rendering; what is hostile or wrong is one line."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers")
pytest.importorskip("torch")

from tests.engine.tiny import write_tokenizer  # noqa: E402

from servewise.engine.checkpoints.chat import ChatTemplate, chosen_template  # noqa: E402
from servewise.errors import InputError  # noqa: E402

CHAT = [
    {"role": "system", "content": 'Be <brief> & "clear".'},
    {"role": "user", "content": "What is é?\n"},
    {"role": "assistant", "content": " A letter. "},
    {"role": "user", "content": "And 2 + 2?"},
]
# The published templates of the families that the engine reads, shortened to text messages (their tokenizer_config.json
# on the hub, 2026-11).
TEMPLATES = {
    "smollm2": "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>"
    "system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "llama-3": "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
    "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
    "llama-2": "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = "
    "messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}"
    "{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + "
    "'\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content | trim + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + content | trim + ' ' + eos_token }}{% endif %}{% endfor %}",
    "with helpers": "{%- set ns = namespace(last='') -%}\n    {% for message in messages -%}\n  {%- if message.role == "
    "'assistant' %}{% generation %}{{ message | tojson }}{% endgeneration %}{% continue %}{% endif %}\n"
    "{%- set ns.last = message.content %}{{ loop.index }}:{{ message.content.split(' ')[-1] }}\n{% endfor %}"
    "{{ ns.last | upper }}{{ dict(a=1) | tojson(indent=2) }}",
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_rendering_is_transformers_own(name: str, tmp_path: Path) -> None:
    """The text is what apply_chat_template gives, blocks trimmed, special tokens named, JSON unescaped."""
    write_tokenizer(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    expected = theirs.apply_chat_template(
        CHAT, chat_template=TEMPLATES[name], add_generation_prompt=True, tokenize=False
    )

    found = ChatTemplate(TEMPLATES[name], {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}).render(CHAT)

    assert found == expected


def test_the_date_comes_from_the_clock() -> None:
    """strftime_now asks the clock that was given."""
    template = ChatTemplate("{{ strftime_now('%d %b %Y') }}", clock=lambda: datetime(2024, 7, 26))

    assert template.render(CHAT) == "26 Jul 2024"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{% for %}", "line 1: Expected an expression"),
        ("{{ raise_exception('roles must alternate') }}", "cannot render these messages: roles must alternate"),
        ("{{ messages[9].content }}", "cannot render these messages"),
        ("{{ ''.__class__.__mro__ }}", "cannot render these messages: access to attribute '__class__'"),
        ("{{ messages.append(1) }}", "cannot render these messages"),
        ("{{ 1 / 0 }}", "cannot render these messages: division by zero"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "cannot render these messages"),
        ("{% for i in range(10 ** 9) %}{% endfor %}", "cannot render these messages: Range too big"),
    ],
)
def test_what_a_template_does_wrong_is_one_line(source: str, said: str) -> None:
    """Syntax errors, refusals, escapes from the sandbox and endless work end in one InputError."""
    with pytest.raises(InputError) as caught:
        ChatTemplate(source, where="file").render(CHAT)

    assert str(caught.value).startswith("file: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "a chat needs at least one message"),
        (["hi"], r"messages\[0\]: a message must be an object with a role"),
        ([{"content": "hi"}], "must be an object with a role"),
        ([{"role": "user"}], r"messages\[0\]: content must be a text"),
        ([{"role": "user", "content": None}], "content must be a text"),
    ],
)
def test_messages_that_are_none_are_named(messages: list[Any], said: str) -> None:
    """The first message without a role or a text is named by its place."""
    with pytest.raises(InputError, match=said):
        ChatTemplate(TEMPLATES["smollm2"]).render(messages)


def test_the_default_of_several_templates_is_taken() -> None:
    """A list of named templates gives the one called default; what is no template is refused."""
    named = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]

    assert chosen_template(named, "file") == "d"
    assert chosen_template(None, "file") is None
    for wrong in (7, [7], {"default": "d"}):
        with pytest.raises(InputError, match="chat_template must be a text"):
            chosen_template(json.loads(json.dumps(wrong)), "file")
