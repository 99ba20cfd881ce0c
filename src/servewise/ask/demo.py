"""The main job on built-in input: the study's case, Llama 2 13B on an 80 GB A100, under a real conversation trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from servewise import __version__
from servewise.answer import Answer
from servewise.ask.plan import plan
from servewise.ask.prefix import prefix
from servewise.ask.simulate import simulate
from servewise.ask.size import size
from servewise.ask.speculate import speculate
from servewise.ask.steptime import steptime
from servewise.ask.study import study
from servewise.caveats import Caveat, unique
from servewise.conditions import Conditions

MODEL, DRAFT, ACCELERATOR = "llama-2-13b", "tinyllama-1.1b", "a100-80gb"
TRACE, PREFIX_TRACE = "azure-conv", "mooncake-conv"
SLO = "ttft_p95<=2s, tpot_p95<=100ms"
POLICIES = ("static", "dynamic", "continuous")
RATES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
SLOTS = 32
SEEDS = 3
ACCEPTANCE = 0.7
RIVALS = (ACCELERATOR, "h100-sxm", "l40s")
COUNTS = (1, 2)
USD_PER_MILLION_INPUT = 3.0

Progress = Callable[[str, int, int], None]


def demo(*, processes: int = 1, progress: Progress | None = None) -> Answer:
    """Every question asked of the study's case: ``result["sections"]`` holds an answer's document for each."""
    asked = _questions(processes)
    found: dict[str, Answer] = {}
    for name, ask in asked.items():
        if progress is not None:
            progress(name, len(found), len(asked))
        found[name] = ask()
    if progress is not None:
        progress("done", len(found), len(asked))
    return Answer(
        command="demo",
        conditions=Conditions(
            hardware="1 x A100 80GB and its rivals",
            load=f"{TRACE}, {', '.join(f'{rate:g}' for rate in RATES)} requests/s",
            lengths="those of the trace",
            precision="as the checkpoint",
            model=MODEL,
            workload=TRACE,
            version=__version__,
        ),
        result={"sections": {name: answer.to_json() for name, answer in found.items()}},
        caveats=_caveats(found),
    )


def _questions(processes: int) -> Mapping[str, Callable[[], Answer]]:
    return {
        "size": lambda: size(MODEL, ACCELERATOR),
        "steptime": lambda: steptime(MODEL, ACCELERATOR),
        "simulate": lambda: simulate(
            MODEL,
            ACCELERATOR,
            workload=TRACE,
            policy=POLICIES,
            rate=RATES,
            slots=SLOTS,
            seeds=SEEDS,
            slo=SLO,
            processes=processes,
        ),
        "speculate": lambda: speculate(MODEL, ACCELERATOR, draft=DRAFT, acceptance=ACCEPTANCE),
        "prefix": lambda: prefix(PREFIX_TRACE, price=USD_PER_MILLION_INPUT),
        "plan": lambda: plan(MODEL, RIVALS, workload=TRACE, slo=SLO, counts=COUNTS, processes=processes),
        "study": lambda: study(processes=processes),
    }


def _caveats(found: Mapping[str, Answer]) -> tuple[Caveat, ...]:
    return unique(tuple(caveat for answer in found.values() for caveat in answer.caveats))
