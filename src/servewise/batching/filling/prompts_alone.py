"""Prompts only while nobody decodes: llama.cpp's server without ``cont_batching``."""

from __future__ import annotations

from servewise.batching.filling.batcher import Planned, Preempted
from servewise.batching.filling.decode_first import DecodeFirst


class PromptsAlone(DecodeFirst):
    """Whoever comes waits until all that decode have ended (``cont_batching || batch.size() == 0``)."""

    decodes_beside_prompts = False  # nor does one whose KV is fetched in the same step

    def _with_prompts(self, preempted: Preempted) -> Planned:
        return ([], [], preempted) if self.group.size else super()._with_prompts(preempted)
