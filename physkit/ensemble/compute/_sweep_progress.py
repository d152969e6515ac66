"""`SweepProgress`: what `sweep(…, on_chunk=…)` tells a function of yours after each chunk."""

import dataclasses

import numpy as np

from ..store._ensemble import Ensemble
from ..store._member_table import result_columns


@dataclasses.dataclass(frozen=True)
class SweepProgress:
    """A chunk of members that has been computed and saved, and how far the sweep is.

    - `chunk`: its number; `members`: what was computed, an `Ensemble` of these members alone.
    - `done`, `total`: members of the sweep.
    """

    chunk: int
    done: int
    total: int
    members: Ensemble

    def metrics(self) -> dict[str, float]:
        """Numbers for a logger: members done, those that failed in this chunk, and means over the others."""
        ok = self.members.ok
        scalars = {"members": float(self.done), "failed": float(np.sum(~ok))}
        # Without vectors: a histogram would be a hundred curves in the logger.
        for name, values in result_columns(self.members, with_vectors=False).items():
            if values.dtype.kind in "iuf" and np.any(ok):
                scalars[f"mean {name}"] = float(np.mean(values[ok]))
        return scalars
