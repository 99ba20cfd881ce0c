"""Charts drawn in several threads, as the local page draws them, are those drawn one by one."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import servewise
from servewise.report.figures import figures_of


def test_threads_draw_what_one_draws() -> None:
    """Matplotlib's settings are of the whole process: whoever draws has them alone."""
    answer = servewise.size("llama-3.1-8b", accelerator="l4")
    alone = [figure.svg for figure in figures_of(answer)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: [figure.svg for figure in figures_of(answer)], range(8)))

    assert json.dumps(found) == json.dumps([alone] * 8)
