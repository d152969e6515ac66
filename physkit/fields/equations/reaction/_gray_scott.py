"""Gray and Scott's reaction: spots that split."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, param, recomputed, require_nonnegative, static

from ..._equation import AbstractEquation
from ..._field import Field
from .._requirements import require_components


class GrayScott(AbstractEquation):
    """Gray and Scott's reaction U + 2V → 3V, V → P, fed with U.

        ∂u/∂t = −u v² + F (1 − u)
        ∂v/∂t =  u v² − (F + k) v

    With `Diffusion([D_u, D_v])`, D_u = 2 D_v, spots split, stripes fold, mazes grow, by F and k.

    **Arguments:**

    - `feed`: F, 1 / time; one number or one per point.
    - `kill`: k, 1 / time; likewise.
    - `component`: name of the field with components u and v, `[2, *points]`, where the state has several.

    **Good values:** F = 0.0367, k = 0.0649 (spots that split) with D = (0.2, 0.1) on cells of
    length 1 and dt = 1.

    **Reference:** Pearson, Science 261, 189 (1993).
    """

    feed: Float[Array, "..."] = param()
    kill: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __check_init__(self):
        require_nonnegative(self, "feed", "kill")

    def nonlinear(self, clock: Clock, field: Field) -> Field:
        del clock
        require_components(field, 2, "Gray and Scott's reaction")

        def rates(values: Array) -> Array:
            u, v = values
            converted = u * v * v
            return jnp.stack(
                (self.feed * (1 - u) - converted, converted - (self.feed + self.kill) * v)
            )

        return field.map(recomputed(rates))
