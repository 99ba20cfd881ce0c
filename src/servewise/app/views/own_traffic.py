"""Traffic of one's own, by sliders: a workload file that the form writes."""

from __future__ import annotations

from servewise.app.field import Field, number
from servewise.app.view import Files

OWN = "own"
GROUP = "Own traffic"
FOLDS = (GROUP, "workload", OWN)
_ENDS = {
    "prompt": ("Median prompt (tokens)", "600", (16, 8192, 16)),
    "output": ("Median answer (tokens)", "150", (8, 2048, 8)),
    "spread": ("Spread of lengths (sigma of the logarithm)", "0.8", (0.1, 2, 0.1)),
    "burst": ("Burstiness of arrivals (CV; 1: Poisson)", "1", (0.2, 5, 0.2)),
    "shared": ("Common system prompt (tokens)", "0", (0, 4096, 64)),
}
SLIDERS = tuple(
    Field(name=name, label=label, kind="range", default=default, numbers=numbers, group=GROUP)
    for name, (label, default, numbers) in _ENDS.items()
)
_FILE = """\
requests = 2000

[arrivals]
kind = "gamma"
rate_per_s = 1.0
cv = {burst}

[prompt_tokens]
kind = "lognormal"
median = {prompt}
sigma = {spread}

[output_tokens]
kind = "lognormal"
median = {output}
sigma = {spread}
"""
_PREFIX = """
[prefix]
groups = 1
tokens = {shared}
"""


def with_own_traffic(given: dict[str, str], files: Files) -> dict[str, str]:
    """``given`` with the sliders as a workload file, where the traffic is one's own."""
    if given["workload"] != OWN:
        return given
    numbers = {field.name: number(given[field.name], field) for field in SLIDERS}
    text = _FILE + (_PREFIX if float(numbers["shared"]) > 0 else "")
    return given | {"workload": files("traffic.toml", text.format(**numbers))}
