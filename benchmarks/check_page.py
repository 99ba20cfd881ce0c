"""``python -m benchmarks.check_page``: docs/check.md written from the catalogue of mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from servewise.check.engines.options import ENGINES, options_of
from servewise.check.mistakes import MISTAKES, Mistake

PAGE = Path(__file__).parents[1] / "docs" / "check.md"
SUBJECTS = {
    "memory": "Device memory",
    "scheduling": "Scheduling",
    "parallelism": "Splits and replicas",
    "speculation": "Speculation",
    "precision": "Precision",
    "prefix": "Prefix caching",
    "options": "Options",
    "operation": "Operation",
    "claims": "Claims and results",
    "prompts": "Prompts",
}
HEAD = """\
# What `servewise check` finds

<!-- Written by python -m benchmarks.check_page from src/servewise/check/mistakes.toml; a test holds the two equal. -->

`servewise check FILE` reads a command line or config of vLLM, SGLang, TensorRT-LLM or llama.cpp (alone, in a shell
script, a compose file, a Kubernetes manifest or a document), a benchmark's result (servewise, vLLM bench, GuideLLM,
AIPerf, llama-benchy), a report with figures, an engine's log, or a log of prompts, and names the common mistakes in it.
What a file holds is told by its content. With `--accelerator`, and a model that is in the catalogue, on disk, or given
with `--model`, memory and step times are computed too. `--fail-on warning` makes it a gate: exit 1.

An **error** cannot work, or not as meant; a **warning** costs speed, memory or trust; a **note** is worth a look. A
case may weigh more or less than the usual severity given here; its own sentence carries the figures.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_subjects(), *_lists()]) + "\n"


def _subjects() -> Iterator[str]:
    for subject, title in SUBJECTS.items():
        yield f"## {title}\n"
        yield from (_mistake(each) for each in MISTAKES.values() if each.subject == subject)


def _mistake(each: Mistake) -> str:
    what = f"{each.title} ({each.severity}). {each.why}"
    return f"### {each.code}\n\n{what}\n\nCure: {each.cure}\n\nSource: {each.source}.\n"


def _lists() -> Iterator[str]:
    yield "## The engines' options\n"
    yield "Which options an engine takes is data, written from the engine (`src/servewise/check/engines/options`):\n"
    yield "| engine | version | options | made by |\n|---|---|---|---|"
    for engine in ENGINES:
        known = options_of(engine)
        count = len({spec.names for spec in known.by_name.values()})
        yield f"| [{engine}]({known.address}) | {known.version} | {count} | {known.made_by} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
