"""The step that a lattice needs for a speed."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import ParameterError, ShapeError, concrete_value
from physkit.geometry import Grid

from ._populations import LARGEST_MACH, require_cubes


def time_step(grid: Grid, speed: ArrayLike, mach: ArrayLike = 0.1) -> Float[Array, ""]:
    """The dt at which a speed is at a given Mach number on this grid: dt = Ma h/(√3 u).

    **Arguments:**

    - `speed`: the largest of the flow to come, length / time.
    - `mach`: up to 0.3; errors of compressibility grow with its square.

    **Errors:** `ParameterError` for a Mach number above 0.3, or a speed that is not positive; `ShapeError` for
    several numbers.
    """
    require_cubes(grid)
    for name, value in (("speed", speed), ("mach", mach)):
        if jnp.ndim(value):
            raise ShapeError(f"{name} is one number, the largest; got shape {jnp.shape(value)}")
        number = concrete_value(jnp.asarray(value))
        if number is not None and not number > 0:
            raise ParameterError(f"{name} is positive; got {float(number):.6g}")
    number = concrete_value(jnp.asarray(mach))
    if number is not None and float(number) > LARGEST_MACH + 1e-6:
        raise ParameterError(f"mach is at most {LARGEST_MACH}; got {float(number):.6g}")
    h = grid.spacing[0]
    return (jnp.asarray(mach) * h / (jnp.sqrt(3.0) * jnp.asarray(speed))).astype(h.dtype)
