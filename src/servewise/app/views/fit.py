"""Does it fit, and how much room does it leave?"""

from __future__ import annotations

from servewise.app.view import View
from servewise.app.views.common import CONTEXT, DEPLOYMENT

FIT = View(
    name="fit",
    title="Fit",
    question="Does the model fit, and for how many sequences does it leave room?",
    command="size",
    fields=(*DEPLOYMENT, CONTEXT),
)
