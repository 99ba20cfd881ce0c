"""Does a server measured at 1 and 8 streams tell what it will do at other loads?

    python -m benchmarks.accuracy.calibration --servers llamacpp,own,vllm --run-dir runs

For each server: closed loops of 1 and 8 streams are measured and calibrated on (requests alone: no step records are
read). Then 16 and 32 streams, Poisson arrivals at 50% and 80% of the capacity that the calibration says, and 8 streams
over a shared, warm prefix of 512 tokens with the prefix cache on are foretold, written down, and only then measured.
What is in the run directory already is not measured again. Bars: TPOT p50 5%, throughput 5%, TTFT p50 10%, p95 15%.

The servers run as in ``servewise experiment serve-small``, SmolLM2-135M in bf16, client and server on the same cores:
nothing else should run. Memory bandwidth and other programs' share of the cores are read before every run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.record import save, table
from servewise.answer import finite
from servewise.ask.bench import bench
from servewise.ask.bench_options import BenchOptions
from servewise.ask.calibrate import calibrate
from servewise.ask.deploying import deploy
from servewise.ask.foretelling import Load, capacity_per_s, foretell
from servewise.ask.loop import pause_in, rows_of, server_of
from servewise.ask.probe_ops import probe_ops
from servewise.ask.serve_small.files import ModelFiles
from servewise.ask.serve_small.launching import NAME, Places, launcher_of
from servewise.ask.serve_small.machine import Gauge
from servewise.ask.serve_small.session import is_whole
from servewise.ask.serve_small.variants import SERVERS, Variant
from servewise.ask.serve_small.wanted import Wanted
from servewise.engine.checkpoints.library import SMOLLM2
from servewise.measure.servers.running import running
from servewise.plan.server import Server
from servewise.probe.ops.machine import this_machine
from servewise.probe.ops.survey import Scope
from servewise.workload.notation import written_lengths
from servewise.workload.prefix import SharedPrefix

SLOTS, PREFIX = 32, 512
PROMPTS, OUTPUTS = "64-192", "24-72"
# Tokens a step at most: llama.cpp's --batch-size, the own engine's default of the experiment, vLLM's for a server.
BATCHED_TOKENS = {"llamacpp": 2048, "own": 512, "vllm": 2048}
# llama.cpp is started with room for every slot's context, so no pool runs dry: its own -c is a total over the slots.
ENGINES = {"llamacpp": "ideal", "own": "ideal", "vllm": "vllm"}
KNOWN, ASKED, SHARES = (1, 8), (16, 32), (0.5, 0.8)
BARS = {"tpot_p50_s": 0.05, "output_tokens_per_s": 0.05, "ttft_p50_s": 0.10, "tpot_p95_s": 0.15, "ttft_p95_s": 0.15}


@dataclass(frozen=True, slots=True)
class Piece:
    """One run: its name and its load; ``cached``: with the prefix cache on and warm."""

    name: str
    load: Load
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything that the runs of one server have in common; ``scale`` shortens them for a smoke run."""

    server: str
    folder: Path
    machine: Path
    places: Places
    threads: int
    scale: float

    def load(self, requests: int, **of: Any) -> Load:
        """A load of so many requests, or of their share in a smoke run."""
        count = max(12, 3 * of.get("streams", 0), round(requests * self.scale))
        return Load(requests=count, prompts=written_lengths(PROMPTS), outputs=written_lengths(OUTPUTS), **of)

    def known(self) -> list[Piece]:
        """What is calibrated on."""
        counts = {1: 16, 8: 64}
        return [Piece(f"streams-{each}", self.load(counts[each], streams=each)) for each in KNOWN]

    def asked(self, server: Server, pause_s: float) -> list[Piece]:
        """What is foretold."""
        found = [
            Piece(f"streams-{each}", self.load(80 if each == 16 else 128, streams=each, pause_s=pause_s))
            for each in ASKED
        ]
        capacity = capacity_per_s(server, self.load(1))
        for share in SHARES:
            rate = float(f"{share * capacity:.3g}")
            found.append(Piece(f"poisson-{share:.0%}".rstrip("%"), self.load(72, rate_per_s=rate)))
        prefix = SharedPrefix(1, PREFIX)
        return [*found, Piece("prefix", self.load(48, streams=8, pause_s=pause_s, prefix=prefix), cached=True)]


def main() -> int:
    """Measure, calibrate, foretell, measure, compare."""
    arguments = _arguments()
    folder = Path(arguments.run_dir)
    folder.mkdir(parents=True, exist_ok=True)
    machine = Path(arguments.accelerator) if arguments.accelerator else _machine(folder)
    cache = Path.home() / ".cache" / "servewise"
    places = Places(
        environments=cache / "environments",
        models=cache / "written",
        llama_server=Path(arguments.llama_server) if arguments.llama_server else None,
    )
    threads = this_machine("cpu", None).threads or 1
    found = {}
    for name in arguments.servers.split(","):
        if name not in SERVERS:
            print(f"{name} is no server: one of {', '.join(SERVERS)}", file=sys.stderr)
            return 2
        found[name] = _one(Bench(name, folder / name, machine, places, threads, arguments.scale))
        _show(name, found[name])
    if arguments.save:
        save("calibration", finite({"scale": arguments.scale, "bars": BARS, "servers": found}))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", default="llamacpp,own,vllm")
    parser.add_argument("--run-dir", required=True)
    parser.add_argument("--accelerator", help="this machine as a TOML file; default: measured and kept in the run dir")
    parser.add_argument("--llama-server", help="a llama-server program in place of the packaged one")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the requests, for a smoke run")
    parser.add_argument("--save", action="store_true", help="keep the result of record")
    return parser.parse_args()


def _machine(folder: Path) -> Path:
    path = folder / "machine.toml"
    if not path.exists():
        print("measuring this machine", file=sys.stderr)
        scope = Scope(gemm_sides=(1024,), working_sets=(2**28,), passes=2)
        probe_ops(None, passes=2, scope=scope, accelerator_out=path)
    return path


def _one(bench_: Bench) -> dict[str, Any]:
    for piece in _measured(bench_, bench_.known(), cached=False):
        print(f"{bench_.server} {piece}: measured", file=sys.stderr)
    options = {
        "engine": ENGINES[bench_.server],
        "max_batched_tokens": BATCHED_TOKENS[bench_.server],
        "max_context": 1024,
    }
    known = [bench_.folder / each.name for each in bench_.known()]
    file = bench_.folder / "calibration.toml"
    answer = calibrate(known, "smollm2-135m", str(bench_.machine), output=file, slots=SLOTS, **options)  # type: ignore[arg-type]
    deployment = deploy("smollm2-135m", str(bench_.machine), **options)  # type: ignore[arg-type]
    server = replace(server_of(deployment, file, slots=SLOTS), blocks=None)
    pieces = _kept(bench_, server, known)
    cold, warm = ([each for each in pieces if each.cached == cached] for cached in (False, True))
    with_cache = replace(server_of(deployment, file, slots=SLOTS, prefix_cache=True), blocks=None)
    foretold = {each.name: foretell(with_cache if each.cached else server, each.load) for each in pieces}
    told = {name: rows_of(each, {}) for name, each in foretold.items()}
    (bench_.folder / "foretold.json").write_text(json.dumps(told, indent=1))
    for some, cached in ((cold, False), (warm, True)):
        for name in _measured(bench_, some, cached=cached):
            print(f"{bench_.server} {name}: measured", file=sys.stderr)
    rows = []
    for each in pieces:
        row = json.loads((bench_.folder / each.name / "row.json").read_text())
        compared = [found | {"within": _within(found)} for found in rows_of(foretold[each.name], row["row"])]
        rows.append({"run": each.name, "load": str(each.load), "machine": row["machine"], "metrics": compared})
    known_machines = [json.loads((path / "row.json").read_text())["machine"] for path in known]
    return {
        "coefficients": answer.result["coefficients"],
        "train_error": answer.result["train_error"],
        "heldout_error": answer.result["heldout_error"],
        "by_load": answer.result["by_load"],
        "machine_when_calibrated": known_machines,
        "rows": rows,
    }


def _kept(bench_: Bench, server: Server, known: Sequence[Path]) -> list[Piece]:
    """What is foretold; the rates stay those of the first time, so that a run that goes on measures the same."""
    pieces = bench_.asked(server, pause_in(known))
    path = bench_.folder / "rates.json"
    if path.exists():
        rates: Mapping[str, float] = json.loads(path.read_text())
        return [
            replace(each, load=replace(each.load, rate_per_s=rates[each.name])) if each.name in rates else each
            for each in pieces
        ]
    path.write_text(json.dumps({each.name: each.load.rate_per_s for each in pieces if each.load.rate_per_s}))
    return pieces


def _measured(bench_: Bench, pieces: Sequence[Piece], *, cached: bool) -> list[str]:
    """Measure those that are missing, with one start of the server; their names."""
    missing = [each for each in pieces if not (bench_.folder / each.name / "row.json").exists()]
    if not missing:
        return []
    wanted = Wanted(model=SMOLLM2, threads=bench_.threads)
    variant = Variant(
        part="16-bit", server=bench_.server, weights="bf16", streams=(SLOTS,), prefix_cache=cached, shared=cached
    )
    files = ModelFiles(wanted.model, bench_.places.models, _tell)
    launcher = launcher_of(variant, wanted, files, bench_.places, _tell)
    gauge = Gauge(this_machine("cpu", bench_.threads))
    log = bench_.folder / f"server{'-cached' if cached else ''}.log"
    with running(launcher, log, tell=_tell) as server:
        for each in missing:
            machine = gauge.read()
            folder = bench_.folder / each.name
            if folder.exists() and not is_whole(folder):
                shutil.rmtree(folder)
            found = bench(server.url, _options(each, folder, bench_))
            if found.ended != "whole":
                raise SystemExit(f"{each.name}: {found.reason}")
            row = {"machine": machine, "row": found.answer.to_json()["result"]["rows"][0]}
            (folder / "row.json").write_text(json.dumps(row))
    return [each.name for each in missing]


def _options(piece: Piece, folder: Path, bench_: Bench) -> BenchOptions:
    load = piece.load
    return BenchOptions(
        model=NAME,
        hardware=f"{bench_.threads} CPU cores, server and client on them",
        precision="bf16 weights, 16-bit KV",
        concurrency=load.streams,
        rate=load.rate_per_s,
        requests=load.requests,
        input_tokens=PROMPTS,
        output_tokens=OUTPUTS,
        shared_prefix=load.prefix.tokens if load.prefix else None,
        prefix_cache="warm" if piece.cached else "cold",
        warmup=2,
        repeats=1,
        api="completions",
        keep_alive=bench_.server != "llamacpp",  # its server drops kept connections now and then
        run_dir=str(folder),
    )


def _within(row: Mapping[str, Any]) -> bool:
    ratio = row["ratio"]
    return ratio is not None and abs(ratio - 1.0) <= BARS[row["metric"]]


def _show(name: str, found: Mapping[str, Any]) -> None:
    print(f"\n{SERVERS[name]}: predicted / measured (bars: {', '.join(f'{k} {v:.0%}' for k, v in BARS.items())})")
    rows = [
        [row["load"] if first else "", each["metric"], each["predicted"], each["measured"], _ratio(each), _told(each)]
        for row in found["rows"]
        for first, each in ((place == 0, each) for place, each in enumerate(row["metrics"]))
    ]
    table(("load", "metric", "predicted", "measured", "ratio", "bar"), rows)


def _ratio(row: Mapping[str, Any]) -> float:
    return float("nan") if row["ratio"] is None else float(row["ratio"])


def _told(row: Mapping[str, Any]) -> str:
    return "within" if row["within"] else "MISSED"


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
