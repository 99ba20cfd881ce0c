"""Names on the command line that a shell can complete: models, accelerators, workloads, policies, engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem


class Name(click.ParamType[str]):
    """A text that may be one of ``known`` (``listed``: several, with commas), or a path; the room judges it."""

    name = "text"

    def __init__(self, known: Callable[[], Iterable[str]], *, listed: bool = False) -> None:
        self.known, self.listed = known, listed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        """The text as it is."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """The known names that begin so (``listed``: the last of several); files where there are none."""
        before, comma, last = incomplete.rpartition(",") if self.listed else ("", "", incomplete)
        known = (each for each in self.known() if each.startswith(last.lower()))
        found = [CompletionItem(f"{before}{comma}{each}") for each in known]
        return found or [CompletionItem(incomplete, type="file")]


def _models() -> Iterable[str]:
    from servewise.modelspec.load import model_names

    return model_names()


def _accelerators() -> Iterable[str]:
    from servewise.hardware.catalogue import catalogue

    return catalogue()


def _workloads() -> Iterable[str]:
    from servewise.workload.load import presets

    return presets()


def _policies() -> Iterable[str]:
    from servewise.ask.serving import POLICIES
    from servewise.plan.presets import PRESETS

    return (*POLICIES, *PRESETS)


def _engines() -> Iterable[str]:
    from servewise.cli.options import ENGINES

    return ENGINES


MODEL, ACCELERATOR, WORKLOAD = Name(_models), Name(_accelerators), Name(_workloads)
POLICY, POLICIES, ENGINE = Name(_policies), Name(_policies, listed=True), Name(_engines)
EXECUTOR = Name(lambda: ("local", "ray"))
