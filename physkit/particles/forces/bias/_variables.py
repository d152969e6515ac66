"""Collective variables: one number of many positions, along which free energies are found."""

import abc
import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Module,
    ParameterError,
    PyTree,
    ShapeError,
    as_arguments,
    call_user_function,
    ratio,
    safe_arctan2,
    safe_norm,
    safe_sqrt,
    static,
)

from ..._arguments import Numbers
from ..._particles import Particles
from ..bonded._bonded import unit_vectors
from ..bonded._torsions import dihedral_angle
from ..bonded._tuples import Tuples

Group = Numbers  # the place of one particle, or those of several, whose center of mass counts


class AbstractCollectiveVariable(Module):
    """One number of the positions of particles, ξ(x). A new one needs only `__call__`."""

    @property
    def period(self) -> float | None:
        """After which ξ repeats, such as 2π of an angle; None where it does not."""
        return None

    @property
    def outside(self) -> bool | None:
        """Whether it is one of places, so that a bias of it acts from outside and has no virial; False where it
        depends on differences of positions only; None where that is not known."""
        return False

    @abc.abstractmethod
    def __call__(self, particles: Particles) -> Float[Array, ""]:
        """ξ of these particles."""

    def difference(self, a: ArrayLike, b: ArrayLike) -> Array:
        """a − b, for values of this variable: the shortest way around where it is periodic."""
        delta = jnp.subtract(a, b)
        if self.period is None:
            return delta
        return delta - self.period * jnp.round(delta / self.period)


class CollectiveVariable(AbstractCollectiveVariable):
    """Your own collective variable, as a plain function of particles.

        CollectiveVariable(lambda p: p.position[0, 0])

    **Arguments:**

    - `function`: `(particles) → number`, or `(particles, args) → number`, smooth in the positions.
    - `args`: arrays that the function depends on and that should be differentiable.
    - `period`: after which its values repeat; None where they do not.
    - `outside`: only for pressure and stress, as of `ExternalEnergy`.

    **Errors:** `ShapeError` for a function that returns no single number.

    **Notes:** define the function once, at module level or outside of loops: every new function object
    compiles again.
    """

    function: Callable = static()
    args: PyTree = eqx.field(default=None, converter=as_arguments)
    period: float | None = static(default=None)
    outside: bool | None = static(default=None)

    def __call__(self, particles: Particles) -> Float[Array, ""]:
        arguments = (particles,) if self.args is None else (particles, self.args)
        signature = "(particles)" if self.args is None else "(particles, args)"
        value = call_user_function(self.function, arguments, "a collective variable", signature)
        if jnp.shape(value) != ():
            raise ShapeError(
                f"a collective variable is one number; its function returned shape {jnp.shape(value)}"
            )
        return jnp.asarray(value, particles.position.dtype)


class _AbstractGroupVariable(AbstractCollectiveVariable):
    """A variable of the centers of mass of groups of particles; all groups are one row of `Tuples`."""

    members: Tuples
    sizes: tuple[int, ...] = static()

    def _set(self, *groups: Group) -> None:
        lists = [np.atleast_1d(np.asarray(group)) for group in groups]
        if any(g.ndim != 1 or not g.size or g.dtype.kind not in "iu" for g in lists):
            raise ParameterError(
                f"a collective variable is of places of particles, a whole number or a list of them each; got "
                f"{groups}"
            )
        places = np.concatenate(lists)[None]
        self.members = Tuples.of(places, places.shape[1], "collective variables")
        self.sizes = tuple(len(g) for g in lists)

    def _centers(self, particles: Particles) -> tuple[list[Array], list[Array]]:
        """The first member of each group, `[d]`, and the center of mass seen from it."""
        self.members.require_inside(particles, "collective variables")
        x = self.members.gather(particles.position)[:, 0]
        mass = self.members.gather(particles.mass[:, None])[:, 0]
        origins, offsets, first = [], [], 0
        for size in self.sizes:
            rows = slice(first, first + size)
            # By nearest images: a group may lie across a side of the box.
            from_first = particles.space.displacement(x[rows], x[first][None])
            weight = ratio(mass[rows], jnp.sum(mass[rows]))
            origins.append(x[first])
            offsets.append(jnp.sum(weight * from_first, axis=0))
            first += size
        return origins, offsets

    def _vectors(
        self, particles: Particles, pairs: Sequence[tuple[int, int]]
    ) -> tuple[Float[Array, "1 d"], ...]:
        """From the nearest image of the center of group b to that of a, for each (a, b)."""
        # Of the centers, not of the first members, whose nearest images may be others.
        centers = [
            origin + offset for origin, offset in zip(*self._centers(particles), strict=True)
        ]
        between = particles.space.displacement
        return tuple(between(centers[a], centers[b])[None] for a, b in pairs)


class Distance(_AbstractGroupVariable):
    """The distance of two particles, or of the centers of mass of two groups.

        ξ = |x_i − x_j|

    **Arguments:** `i`, `j`: places of particles, whole numbers; or lists of them.

    **Notes:** nearest images; a group must be smaller than half of the box.
    """

    def __init__(self, i: Group, j: Group):
        self._set(i, j)

    def __call__(self, particles: Particles) -> Float[Array, ""]:
        (vector,) = self._vectors(particles, ((0, 1),))
        return safe_norm(vector[0])


class Angle(_AbstractGroupVariable):
    """The angle at `j` between `i` and `k`, radians from 0 to π.

    **Arguments:** `i`, `j`, `k`: places of particles, or lists of them, of which the centers of mass count.
    """

    def __init__(self, i: Group, j: Group, k: Group):
        self._set(i, j, k)

    def __call__(self, particles: Particles) -> Float[Array, ""]:
        (a,), (b,) = unit_vectors(self._vectors(particles, ((0, 1), (2, 1))))
        # Accurate at every angle, in any number of dimensions.
        return 2 * safe_arctan2(safe_norm(a - b), safe_norm(a + b))


class Torsion(_AbstractGroupVariable):
    """The dihedral angle of four particles, radians from −π to π (IUPAC: 0 is cis, π trans).

    **Arguments:** `i`, `j`, `k`, `l`: places of particles, or lists of them, whose centers of mass count.

    **Errors:** `ShapeError` in fewer than three dimensions.
    """

    @property
    def period(self) -> float:
        return 2 * math.pi

    def __init__(self, i: Group, j: Group, k: Group, l: Group):
        self._set(i, j, k, l)

    def __call__(self, particles: Particles) -> Float[Array, ""]:
        if particles.dimension != 3:
            raise ShapeError(f"a torsion needs three dimensions; there are {particles.dimension}")
        return dihedral_angle(self._vectors(particles, ((0, 1), (1, 2), (3, 2))))[0]


class RadiusOfGyration(_AbstractGroupVariable):
    """The radius of gyration of a group, weighted by mass: how large a chain or a cluster is.

        ξ² = Σ m |x − c|² / Σ m

    **Arguments:** `members`: places of its particles, a list of whole numbers.

    **Notes:** members are taken by the nearest image of the first: the group must be smaller than half of the
    box.
    """

    def __init__(self, members: Group):
        self._set(members)

    def __call__(self, particles: Particles) -> Float[Array, ""]:
        _, (center,) = self._centers(particles)
        x = self.members.gather(particles.position)[:, 0]
        mass = self.members.gather(particles.mass[:, None])[:, 0]
        from_center = particles.space.displacement(x, x[:1]) - center[None]
        # The part of each first: mass · length² of atoms in SI units is beyond float32.
        part = ratio(mass, jnp.sum(mass))
        return safe_sqrt(jnp.sum(part * from_center**2))
