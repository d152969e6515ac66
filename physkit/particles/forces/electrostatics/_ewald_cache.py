"""What Ewald sums carry from step to step."""

from typing import Any, TypeAlias

from physkit.core import Faults, Module, ParameterError, static

from ..bonded._sharded_tuples import ShardedTuples
from ..pairs._pair_cache import PairCache

Resolution = tuple[Any, Any, Any]  # numbers along each axis
# What a resolution is chosen by, by name.
ResolutionChoices: TypeAlias = tuple[tuple[str, float | int | None], ...]


class EwaldCache(Module):
    """What an Ewald sum carries: near pairs, tables of excluded ones, and how finely space is resolved.

    - `chosen_for`: what `resolution` is for, by name: the cutoff, the tolerance, the order of splines.
    """

    pairs: PairCache
    excluded: ShardedTuples | None
    faults: Faults
    resolution: Resolution = static()
    # Compared, never computed with. As labels they are not in checkpoints, from which a cache is loaded into
    # one of the force that goes on, with the resolution of that.
    chosen_for: ResolutionChoices = static(metadata={"label": True})

    def require_resolution_for(
        self, choices: ResolutionChoices, name: str, given: Resolution | None
    ) -> None:
        """**Errors:** `ParameterError` where the sum that goes on chooses by other numbers, or gives another
        resolution: with its own splitting or splines, that of this cache would not be enough.
        """
        if choices != self.chosen_for:
            carried, own = f"for {_in_words(self.chosen_for)}", _in_words(choices)
        elif given not in (None, self.resolution):
            carried, own = f"{self.resolution}", f"{name}={given}"
        else:
            return
        raise ParameterError(
            f"the Ewald sum in this carry is of another simulation: it holds {name} {carried}, and the force "
            f"has {own}; start from carry.state"
        )


def _in_words(choices: ResolutionChoices) -> str:
    parts = [f"{name}={value:g}" for name, value in choices if value is not None]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
