"""What Ewald sums carry from step to step."""

from typing import Any

from physkit.core import Faults, Module, ParameterError, static

from ..bonded._sharded_tuples import ShardedTuples
from ..pairs._pair_cache import PairCache

Resolution = tuple[Any, Any, Any]  # numbers along each axis


class EwaldCache(Module):
    """What an Ewald sum carries: near pairs, tables of excluded ones, and how finely space is resolved.

    - `cutoff`, `tolerance`: those that `resolution` is for.
    """

    pairs: PairCache
    excluded: ShardedTuples | None
    faults: Faults
    resolution: Resolution = static()
    # Compared, never computed with. As labels they are not in checkpoints, from which a cache is loaded into
    # one of the force that goes on, with the resolution of that.
    cutoff: float | None = static(metadata={"label": True})
    tolerance: float = static(metadata={"label": True})

    def require_resolution_for(
        self, cutoff: float | None, tolerance: float, name: str, given: Resolution | None
    ) -> None:
        """**Errors:** `ParameterError` where the sum that goes on has another cutoff or tolerance, or gives
        another resolution: with its own splitting, that of this cache would leave out waves.
        """
        if (cutoff, tolerance) != (self.cutoff, self.tolerance):
            carried = f"for cutoff={self.cutoff:g} and tolerance={self.tolerance:g}"
            own = f"cutoff={cutoff:g} and tolerance={tolerance:g}"
        elif given not in (None, self.resolution):
            carried, own = f"{self.resolution}", f"{name}={given}"
        else:
            return
        raise ParameterError(
            f"the Ewald sum in this carry is of another simulation: it holds {name} {carried}, and the force "
            f"has {own}; start from carry.state"
        )
