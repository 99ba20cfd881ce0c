"""The main job on built-in input: the study's case, Llama 2 13B on an 80 GB A100, under a real conversation trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
from servewise.version import __version__

MODEL, DRAFT, ACCELERATOR = "llama-2-13b", "tinyllama-1.1b", "a100-80gb"
TRACE, PREFIX_TRACE = "azure-conv", "mooncake-conv"
SLO = "ttft_p95<=2s, tpot_p95<=100ms"
POLICIES = ("static", "dynamic", "continuous")
RATES = (0.5, 1.0, 2.0, 3.0)
SLOTS = 32
ACCEPTANCE = 0.7
RIVALS = (ACCELERATOR, "h100-sxm", "l40s")
COUNTS = (1, 2)
USD_PER_MILLION_INPUT = 3.0

Progress = Callable[[str, int, int], None]
Inner = Callable[[int, int], None]


def demo(*, processes: int = 1, progress: Progress | None = None) -> Answer:
    """Every question asked of the study's case: ``result["sections"]`` holds an answer's document for each."""
    asked = _questions(processes)
    found: dict[str, Answer] = {}
    for place, (name, ask) in enumerate(asked.items()):
        found[name] = ask(_within(progress, name, place, len(asked)))
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


def _within(progress: Progress | None, name: str, place: int, places: int) -> Inner:
    """Progress within the question at ``place``, as progress of the whole, in hundredths of a question."""

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(name, 100 * place + 100 * done // max(total, 1), 100 * places)

    tell(0, 1)
    return tell


def _questions(processes: int) -> Mapping[str, Callable[[Inner], Answer]]:
    return {
        "size": lambda _: size(MODEL, ACCELERATOR),
        "steptime": lambda _: steptime(MODEL, ACCELERATOR),
        "simulate": lambda told: simulate(
            MODEL,
            ACCELERATOR,
            workload=TRACE,
            policy=POLICIES,
            rate=RATES,
            slots=SLOTS,
            slo=SLO,
            processes=processes,
            progress=told,
        ),
        "speculate": lambda _: speculate(MODEL, ACCELERATOR, draft=DRAFT, acceptance=ACCEPTANCE),
        "prefix": lambda _: prefix(PREFIX_TRACE, price=USD_PER_MILLION_INPUT),
        "plan": lambda told: plan(
            MODEL, RIVALS, workload=TRACE, slo=SLO, counts=COUNTS, processes=processes, progress=told
        ),
        "study": lambda told: study(processes=processes, progress=told),
    }


def _caveats(found: Mapping[str, Answer]) -> tuple[Caveat, ...]:
    return unique(tuple(caveat for answer in found.values() for caveat in answer.caveats))
