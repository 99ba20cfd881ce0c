"""Two processes on loopback that hold one model together; run as a script by the tests."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tests.engine.decoder.feeder import Feeder

from servewise.engine.checkpoint import load_checkpoint
from servewise.engine.parallel.leading import Leader, follow
from servewise.engine.parallel.load import load_parallel_decoder


def run(feeds: list[dict[str, list[int]]], model: Any) -> list[dict[str, torch.Tensor]]:
    """The logits of each step."""
    feeder = Feeder(model)
    return [feeder.feed(new) for new in feeds]


def main(rank: int, ranks: int, store: str, job: Path) -> None:
    """One rank: the first leads and writes the logits beside the job."""
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=ranks, timeout=timedelta(seconds=60)
    )
    asked = torch.load(job)
    decoder = load_parallel_decoder(load_checkpoint(asked["folder"]), dtype=asked["dtype"])
    if rank == 0:
        leader = Leader(decoder)
        torch.save(run(asked["feeds"], leader), job.with_suffix(".out"))
        leader.stop()
    else:
        assert follow(decoder) == len(asked["feeds"])
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
