"""A chat template in a process of its own: the same text, and an end to what has none."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

import pytest

pytest.importorskip("jinja2")

from servewise.engine.checkpoints.chat import ChatTemplate
from servewise.engine.checkpoints.rendering import ConfinedTemplate
from servewise.errors import InputError

HI = [{"role": "user", "content": "hi é \ud800"}]
PLAIN = ChatTemplate("{{ bos }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", {"bos": "<s>"})


@contextmanager
def confined(source: str, seconds: float = 20.0) -> Iterator[ConfinedTemplate]:
    """A template for the time of the block."""
    with closing(ConfinedTemplate(ChatTemplate(source, where="t.jinja"), seconds=seconds)) as found:
        yield found


def test_the_text_is_the_same() -> None:
    """Rendered elsewhere as here, half characters and variables included; again and again, from several threads."""
    with closing(ConfinedTemplate(PLAIN)) as there, ThreadPoolExecutor(4) as threads:
        many = [[{"role": "user", "content": str(at)}] for at in range(20)]

        assert there.render(HI) == PLAIN.render(HI)
        assert list(threads.map(there.render, many)) == [PLAIN.render(each) for each in many]
        assert there.source == PLAIN.source


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__init__.__globals__ }}",
        "{{ messages.append(1) }}",
        "{{ raise_exception('no') }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    ],
)
def test_what_a_template_must_not(source: str) -> None:
    """Memory without end, the interpreter's insides, files and changes are one line that names the template."""
    with confined(source) as template, pytest.raises(InputError, match=r"^t\.jinja: cannot render") as refused:
        template.render(HI)

    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("source", ["{{ 'a' * 10**10 }}", "{{ ('a' * 10**7).replace('a', 'a' * 10**4) }}"])
def test_memory_ends_at_a_gibibyte(source: str) -> None:
    """A text of ten gigabytes is not made: the process has no memory for it, and says so."""
    with confined(source) as template, pytest.raises(InputError, match="MemoryError"):
        template.render(HI)


def test_a_loop_without_end_is_ended() -> None:
    """10^10 turns of an empty loop are broken off in time, the process is gone, and the next chat is rendered."""
    source = "{% if messages[0].content == 'loop' %}{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}"
    source += "{% endfor %}{% endif %}done"
    with confined(source, seconds=2.0) as template:
        template.start()
        start_s = time.monotonic()
        with pytest.raises(InputError, match="takes over 2 s"):
            template.render([{"role": "user", "content": "loop"}])
        took_s = time.monotonic() - start_s

        assert took_s < 20.0  # 10^10 turns would take minutes
        assert template._child is None


def test_a_process_that_was_killed_is_begun_anew() -> None:
    """Whatever ends it, the next rendering has a new one."""
    with closing(ConfinedTemplate(PLAIN)) as template:
        template.render(HI)
        child = template._child
        assert child is not None
        child.kill()
        child.wait()

        assert template.render(HI) == PLAIN.render(HI)


def test_it_knows_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process does not inherit the server's key."""
    monkeypatch.setenv("SERVEWISE_API_KEY", "sk-secret")
    with closing(ConfinedTemplate(PLAIN)) as template:
        template.render(HI)
        assert template._child is not None
        environment = Path(f"/proc/{template._child.pid}/environ").read_bytes()

    assert b"sk-secret" not in environment
    assert b"PATH=" in environment or not os.environ.get("PATH")


def test_closing_ends_it() -> None:
    """After close there is no process."""
    template = ConfinedTemplate(PLAIN)
    template.start()
    child = template._child
    assert child is not None
    template.close()

    assert child.returncode is not None


def test_the_date_is_todays() -> None:
    """strftime_now answers there, too."""
    with confined("{{ strftime_now('%Y') }}") as template:
        assert template.render(HI) in {str(datetime.now().year + more) for more in (0, -1)}
