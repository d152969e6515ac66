"""Torsion maps: an energy that depends on two dihedral angles together, from a table."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import (
    ParameterError,
    ShapeError,
    as_parameter,
    concrete_value,
    data,
    einsum,
    param,
    safe_maximum,
    static,
)

from ..._arguments import Numbers
from ..._particles import Particles
from ._bonded import AbstractBonded, Differences, Vectors
from ._local_tuples import LocalTuples
from ._start_checks import require_bent
from ._torsions import dihedral_angle, require_three_dimensions
from ._tuples import Tuples


class TorsionMaps(AbstractBonded):
    """An energy of two dihedral angles that follow one another, from tables: CMAP, for protein backbones.

        U = Σ E(φ, ψ),   φ of particles 1–4 and ψ of particles 2–5

    E is the periodic bicubic spline through the values of the table.

    **Arguments:**

    - `quintuples`: `[m 5]` whole numbers: places of the five particles along the chain.
    - `values`: `[g g]`, or `[maps g g]`, energy. `values[a, b]` is E at φ = 2πa/g and ψ = 2πb/g; angles are
      counted from 0, not from −π.
    - `map`: the map of each, `[m]` whole numbers; one for all if there is one.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` for other shapes and in fewer than three dimensions; `ParameterError` for places or
    maps that do not exist.

    **Good values:** g = 24, values each 15°.

    **Notes:** the derivative by the table's values is exact, so that maps can be fitted.

    **Reference:** MacKerell, Feig & Brooks, J. Comput. Chem. 25, 1400 (2004).
    """

    tuple_name: ClassVar[str] = "torsion maps"

    tuples: Tuples
    values: Float[Array, "maps g g"] = param()
    map: Int[Array, " m"] = data()
    component: str | None = static(default=None)

    def __init__(
        self,
        quintuples: Numbers,
        values: Numbers,
        map: Numbers = 0,
        component: str | None = None,
    ):
        self._set(quintuples, {}, component)
        table = as_parameter(values)
        if table.ndim == 2:
            table = table[None]
        if table.ndim != 3 or table.shape[1] != table.shape[2] or table.shape[1] < 4:
            raise ShapeError(
                f"values must be [g g] or [maps g g] with g of 4 or more; got {table.shape}"
            )
        self.values = table
        self.map = _as_maps(map, self.tuples.places.shape[0], table.shape[0])

    @property
    def differences(self) -> Differences:
        return ((0, 1), (1, 2), (3, 2), (4, 3))

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        first, second, third, fourth = vectors
        # x₃ − x₂ points along the chain; a dihedral angle takes its axis against it.
        phi = dihedral_angle((first, second, third))
        psi = dihedral_angle((second, -third, fourth))
        maps, g, _ = self.values.shape
        along_phi, along_psi = _spline_weights(phi, g), _spline_weights(psi, g)
        which = jax.nn.one_hot(local.integers(self.map), maps, dtype=phi.dtype)
        # All places of all maps, most with weight 0: products of matrices, whose transpose is no scatter.
        coefficients = _spline_coefficients(self.values)
        at_phi = einsum("ma,kab->mkb", along_phi, coefficients)
        return einsum("mk,mkb,mb->m", which, at_phi, along_psi)

    def require_valid(self, particles: Particles) -> None:
        super().require_valid(particles)
        require_three_dimensions(particles)

    def check_start(self, vectors: Float[np.ndarray, "v m d"], particles: Particles) -> None:
        del particles
        require_bent(vectors, np.ones(vectors.shape[1], bool), self.tuples, self.tuple_name)


def _spline_weights(angle: Float[Array, " m"], g: int) -> Float[Array, "m g"]:
    """The values at `angle` of the periodic cubic B-splines around each of the g nodes."""
    node = jnp.arange(g, dtype=angle.dtype)[None]
    away = angle[:, None] * (g / (2 * jnp.pi)) - node
    distance = jnp.abs(away - g * jnp.round(away / g))
    inner = (4 - 6 * distance**2 + 3 * distance**3) / 6
    outer = safe_maximum(2 - distance, 0) ** 3 / 6
    return jnp.where(distance < 1, inner, outer)


def _spline_coefficients(values: Float[Array, "maps g g"]) -> Float[Array, "maps g g"]:
    """The coefficients of B-splines whose sum goes through `values`, periodic along both axes."""
    g = values.shape[-1]
    # At a node, splines are 1/6, 2/3, 1/6. The inverse is a constant of the program.
    nodes = (4 * np.eye(g) + np.roll(np.eye(g), 1, axis=1) + np.roll(np.eye(g), -1, axis=1)) / 6
    inverse = jnp.asarray(np.linalg.inv(nodes), values.dtype)
    return einsum("ia,kab,jb->kij", inverse, values, inverse)


def _as_maps(value: Numbers, m: int, count: int) -> Int[Array, " m"]:
    numbers = concrete_value(value)
    if numbers is None or not np.issubdtype(numbers.dtype, np.integer):
        raise ParameterError(f"map must be whole numbers from 0; got {value}")
    if numbers.shape not in ((), (m,)):
        raise ShapeError(f"map must be one number or have shape ({m},); got {numbers.shape}")
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
        raise ParameterError(f"there are maps 0 … {count - 1}; map names {numbers.tolist()}")
    return jnp.broadcast_to(jnp.asarray(numbers, jnp.int32), (m,))
