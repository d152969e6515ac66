"""What a simulation starts from must be finite; what is not, is named."""

import equinox as eqx
import jax
import numpy as np

from physkit.core import ParameterError, PyTree, State, concrete_value, path_name


def require_finite_state(state: State) -> None:
    """**Errors:** `ParameterError`, which names the array, for a state whose numbers are not all finite."""
    require_finite(state, "the state at the start")


def require_finite(tree: PyTree, what: str) -> None:
    """Check the numbers of `tree` that can be seen: none inside a trace.

    **Errors:** `ParameterError` that names the first array that is not finite, and where in it.
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        # On the host: a compiled check for each array would make every start slower.
        if not eqx.is_inexact_array(leaf) or isinstance(leaf, jax.core.Tracer):
            continue
        if not getattr(leaf, "is_fully_addressable", True):
            continue
        numbers = concrete_value(leaf)
        if numbers is None or np.all(np.isfinite(numbers)):
            continue
        bad = np.argwhere(~np.isfinite(numbers))
        index = tuple(int(i) for i in bad[0])
        where = f", first at {list(index)}" if index else ""
        raise ParameterError(
            f"{what} is not finite: {path_name(path) or 'it'} has {len(bad)} of {numbers.size} numbers that "
            f"are {numbers[index]}{where}"
        )
