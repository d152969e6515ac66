"""Whether something that is observed lies within an absorbing layer, where waves die out."""

import numpy as np
from jaxtyping import Array

from physkit.core import concrete_value, warn
from physkit.fields import AbstractFieldGroup
from physkit.geometry import AXES


def warn_in_layers(component: object, positions: Array | np.ndarray, what: str) -> None:
    """Warn of positions within the absorbing layers of a component; a trace hides them.

    - `positions`: `[n d]`; NaN along axes that do not count.
    """
    memory = getattr(component, "memory", None)
    if not isinstance(component, AbstractFieldGroup) or memory is None:
        return
    grid = component.grid
    found = concrete_value(positions), concrete_value(grid.spacing)
    if any(x is None for x in found):
        return
    cells = np.asarray(found[0], float) / np.asarray(found[1])
    for axis, side, width in {(m.axis, m.side, m.values.shape[m.axis]) for m in memory.values()}:
        depth = grid.shape[axis] - cells[:, axis] if side else cells[:, axis]
        inside = np.flatnonzero(depth < width * (1 - 1e-6))
        if inside.size:
            which = f" (number {inside[0]} of {len(cells)})" if len(cells) > 1 else ""
            name = f"{AXES[axis]}_{('low', 'high')[side]}"
            warn(
                f"{what}{which} is within the absorbing layer of {width} cells at {name}, where waves die out"
            )
