"""The views, one file each, in the order of the tabs."""

from __future__ import annotations

from collections.abc import Mapping

from servewise.app.view import View
from servewise.app.views.bits import BITS
from servewise.app.views.fit import FIT
from servewise.app.views.plan import PLAN
from servewise.app.views.prefix import PREFIX
from servewise.app.views.runs import RUNS
from servewise.app.views.speculation import SPECULATION
from servewise.app.views.steptime import STEPTIME
from servewise.app.views.traffic import TRAFFIC

VIEWS: Mapping[str, View] = {
    view.name: view for view in (FIT, STEPTIME, TRAFFIC, SPECULATION, BITS, PREFIX, PLAN, RUNS)
}
