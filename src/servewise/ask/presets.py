"""The schedulers of real engines by name, with the engines' own settings as text."""

from __future__ import annotations

from collections.abc import Mapping

from servewise.ask.settings import settings_of
from servewise.batching.policies import Policy
from servewise.deployment.deployment import Deployment
from servewise.plan.presets import PRESETS, preset_of


def preset_named(name: str, deployment: Deployment, settings: Mapping[str, object]) -> Policy:
    """The preset ``name`` with ``settings``; where none is given, what the engine does on that accelerator.

    --max-sequences and --max-batched-tokens are the defaults of what the engine calls them.
    """
    return preset_of(name, deployment, settings_of(PRESETS[name].kind, settings))
