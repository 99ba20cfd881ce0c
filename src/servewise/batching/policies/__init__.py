"""The batching policies, one file each; simulator and engine run them unchanged."""

from __future__ import annotations

from servewise.batching.policies.continuous import Continuous
from servewise.batching.policies.dynamic import Dynamic
from servewise.batching.policies.static import Static

Policy = Static | Dynamic | Continuous

__all__ = ["Continuous", "Dynamic", "Policy", "Static"]
