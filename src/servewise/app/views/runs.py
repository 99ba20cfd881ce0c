"""What did runs do, side by side: simulated beside measured?"""

from __future__ import annotations

from servewise.app.field import Field
from servewise.app.view import View

RUNS = View(
    name="runs",
    title="Runs",
    question="What did runs do, side by side: the simulated beside the measured?",
    command="report",
    fields=(
        Field(
            name="runs",
            label="Runs",
            argument=True,
            kind="files",
            accept=".json",
            hint="Answers of simulate or bench (--json), results of other clients, and the run directories that "
            "servewise app was started with. Two of them are compared.",
            group="Runs",
        ),
    ),
    slow=True,
)
