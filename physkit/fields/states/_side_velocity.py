"""What is asked of a velocity that is given at a side of the box: one entry for each axis."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.core import Module, ParameterError, ShapeError, concrete_value
from physkit.geometry import AXES, Dirichlet, Grid, NoSlip


def require_side_velocity(side: Dirichlet | NoSlip, axis: int, grid: Grid) -> None:
    """Refuse what is no velocity: one number would be taken for every component, and flow in aslant.

    **Errors:** `ShapeError` for another number of components, `ParameterError` for one number that is not 0,
    and for a wall that moves through itself.
    """
    is_wall = isinstance(side, NoSlip)
    value, d = side.velocity if is_wall else side.value, grid.dimension
    names = ", ".join("uvw"[:d])
    if isinstance(value, Module):
        now = jax.eval_shape(lambda x: side.at_time(0.0, x, 1), grid.coordinates())
        shape = (now.velocity if is_wall else now.value).shape
        if shape == () or shape[0] == 1:
            raise ParameterError(
                f"the function at a side across {AXES[axis]} returns one number, a velocity has {d} "
                f"components: return ({names}), each with 0 where there is none"
            )
    elif jnp.ndim(value):
        shape = jnp.shape(value)
    else:
        number = concrete_value(value)
        if is_wall:
            _require_along_wall(value, axis)
            return
        if number is not None and not np.any(number != 0):
            return
        raise ParameterError(
            f"a velocity has {d} components: Dirichlet([{names}]) at a side across {AXES[axis]}; one number "
            "would be all of them"
        )
    if shape[0] != d:
        raise ShapeError(f"the velocity at a side has {d} components; got shape {shape}")
    if is_wall and not isinstance(value, Module):
        _require_along_wall(value[axis], axis)


def _require_along_wall(normal: ArrayLike, axis: int) -> None:
    number = concrete_value(normal)
    if number is not None and np.any(number != 0):
        raise ParameterError(
            f"a NoSlip wall across {AXES[axis]} moves along itself only; got {number} through itself. "
            "Fluid is let in by Dirichlet([…])"
        )
