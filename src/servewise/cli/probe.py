"""``servewise probe``: a group; each probe is a file of its own, imported when it is called."""

from __future__ import annotations

from importlib.util import find_spec

import click

from servewise.cli.group import CommandsOnCall
from servewise.errors import InputError

PROBES = {
    "kv": "With and without the KV cache: positions processed, wall time, identical tokens.",
    "policies": "Static, dynamic and continuous batching measured, beside the simulator's prediction.",
    "speculate": "Acceptance by position on your own prompts, predicted and measured speed-up.",
    "quantise": "What fewer bits cost in quality: KL, top-1 agreement, perplexity, by bits and groups.",
    "ops": "This machine's bandwidth, FLOP/s and operation times: an accelerator file and a calibration.",
}


@click.group(
    "probe",
    cls=CommandsOnCall,
    commands_by_module={name: (f"servewise.cli.probe_{name}", text) for name, text in PROBES.items()},
)
def command() -> None:
    """White-box questions on a real checkpoint, each answered with facts as JSON. Needs ``servewise[engine]``."""
    if find_spec("torch") is None:
        raise InputError("PyTorch is not installed", where="probe", hint="pip install 'servewise[engine]'")
