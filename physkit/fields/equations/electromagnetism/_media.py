"""Media: dielectrics, conductors, and dispersive ones whose polarization is a motion of its own."""

import abc
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Module,
    ShapeError,
    concrete_value,
    param,
    require_nonnegative,
    require_positive,
)
from physkit.geometry import AXES, Grid, Location, Outflow

from ..._field import Field
from ...operators import average
from ._shapes import NodePlane, as_shape, coverage


class Medium(NamedTuple):
    """What one component of E meets: numbers, or arrays over its points.

    - `permittivity`: relative. `conductivity`: None without any.
    """

    permittivity: Array
    conductivity: Array | None


class Pole(NamedTuple):
    """∂J/∂t = strength·E − ω²P − γJ for one component: `strength` in units of ε₀, `damping` None without
    any."""

    strength: Array
    frequency_squared: Array
    damping: Array | None


class AbstractMedium(Module):
    """What fills space, or a body of some shape in it."""

    shape: eqx.AbstractVar[Module | None]


class AbstractDispersiveMedium(AbstractMedium):
    """A medium whose polarization is an oscillator of its own: write `pole`."""

    @abc.abstractmethod
    def pole(self) -> Pole:
        """Strength, ω² and damping inside of it."""


class Dielectric(AbstractMedium):
    """A medium of a given permittivity, which may conduct.

        D = ε₀ ε E,   J = σ E

    **Arguments:**

    - `permittivity`: ε > 0, relative: a number, or one for each cell, `[*cells]` (a design to be optimized).
    - `conductivity`: σ ≥ 0, permittivity / time (S/m in SI units); none if left out.
    - `shape`: a body: a solid such as `Ball`, or a function of the coordinates that gives the distance from the
      surface, negative inside. All of space if left out. Media that come later lie over those before.

    **Notes:** cells that a surface cuts get the mean of ε along it and of 1/ε across it: second order, where a
    component of E is along or across the surface. Terms that would couple components at slanting surfaces are
    left out.

    **Reference:** Farjadpour et al., Opt. Lett. 31, 2972 (2006), eq. 1; Kottke, Farjadpour & Johnson, Phys.
    Rev. E 77, 036611 (2008).
    """

    permittivity: Float[Array, "..."] = param()
    conductivity: Float[Array, ""] | None = param(None)
    shape: Module | None = eqx.field(default=None, converter=as_shape)

    def __check_init__(self):
        require_positive(self, "permittivity")
        if self.conductivity is not None:
            require_nonnegative(self, "conductivity")


class Drude(AbstractDispersiveMedium):
    """Free electrons: a metal or a plasma.

        ∂J/∂t = ε₀ ω_p² E − γ J,   ε(ω) = ε_∞ − ω_p²/(ω² + iγω)

    ε_∞ is that of the `Dielectric` there.

    **Arguments:**

    - `plasma_frequency`: ω_p ≥ 0, radians / time.
    - `damping`: γ ≥ 0, 1 / time; without any if left out.
    - `shape`: as for `Dielectric`.

    **Reference:** Luebbers, Hunsberger & Kunz, IEEE Trans. Antennas Propag. 39, 29 (1991).
    """

    plasma_frequency: Float[Array, ""] = param()
    damping: Float[Array, ""] | None = param(None)
    shape: Module | None = eqx.field(default=None, converter=as_shape)

    def __check_init__(self):
        require_nonnegative(self, "plasma_frequency")
        if self.damping is not None:
            require_nonnegative(self, "damping")

    def pole(self) -> Pole:
        return Pole(self.plasma_frequency**2, jnp.zeros_like(self.plasma_frequency), self.damping)


class Lorentz(AbstractDispersiveMedium):
    """Bound electrons: an absorption line.

        ∂²P/∂t² + γ ∂P/∂t + ω₀² P = ε₀ Δε ω₀² E,   ε(ω) = ε_∞ + Δε ω₀²/(ω₀² − ω² − iγω)

    ε_∞ is that of the `Dielectric` there.

    **Arguments:**

    - `strength`: Δε, what it adds to ε at ω = 0.
    - `frequency`: ω₀ ≥ 0, radians / time.
    - `damping`: γ ≥ 0, 1 / time; without any if left out.
    - `shape`: as for `Dielectric`.

    **Notes:** near ω₀ the wave in it is short and decays within a few cells: cells should be counted per
    wavelength over |n|. The power that a slab with |n| = 3.6 reflects at its resonance is off by 0.06, 0.017,
    0.004, 0.001 with 20, 40, 80, 160 cells per wavelength in vacuum: second order. Of a cell that a surface
    cuts it fills its share: second order for E along the surface, first order for E across it.

    **Reference:** Joseph, Hagness & Taflove, Opt. Lett. 16, 1412 (1991).
    """

    strength: Float[Array, ""] = param()
    frequency: Float[Array, ""] = param()
    damping: Float[Array, ""] | None = param(None)
    shape: Module | None = eqx.field(default=None, converter=as_shape)

    def __check_init__(self):
        require_nonnegative(self, "strength", "frequency")
        if self.damping is not None:
            require_nonnegative(self, "damping")

    def pole(self) -> Pole:
        square = self.frequency**2
        return Pole(self.strength * square, square, self.damping)


def medium_at(
    media: tuple[AbstractMedium, ...], grid: Grid, location: Location, name: str
) -> Medium:
    """ε and σ as the component `name` of E meets them at its points."""
    epsilon, sigma = jnp.ones((), grid.spacing.dtype), None
    for medium in media:
        if not isinstance(medium, Dielectric):
            continue
        new = _at_points(medium.permittivity, grid, location)
        if medium.shape is None:
            epsilon, sigma = new, medium.conductivity
            continue
        f, across = coverage(medium.shape, grid, location, AXES.index(name[1]))
        along = f * new + (1 - f) * epsilon
        inverse = across * (f / new + (1 - f) / epsilon) + (1 - across) / along
        epsilon = 1 / inverse
        if medium.conductivity is not None or sigma is not None:
            inside = 0 if medium.conductivity is None else medium.conductivity
            sigma = f * inside + (1 - f) * (0 if sigma is None else sigma)
    return Medium(epsilon, sigma)


def permittivity_range(media: Sequence[AbstractMedium]) -> tuple[float, float] | None:
    """The smallest and the largest ε that there may be; None where a trace hides one."""
    low = high = 1.0
    for medium in media:
        if not isinstance(medium, Dielectric):
            continue
        epsilon = concrete_value(medium.permittivity)
        if epsilon is None:
            return None
        least, most = float(np.min(epsilon)), float(np.max(epsilon))
        fills_all = medium.shape is None
        low, high = (least, most) if fills_all else (min(low, least), max(high, most))
    return low, high


def permittivity_on_plane(
    media: Sequence[AbstractMedium], grid: Grid, plane: NodePlane, distances: Iterator[np.ndarray]
) -> np.ndarray | None:
    """ε on the nodes of a plane; NaN where it is no one number, None where a trace hides it.

    - `distances`: of the nodes from the surface of each body, which is sharp.
    """
    epsilon = np.ones(())
    for medium in media:
        inside, value = np.ones((), bool), np.asarray(np.nan)
        if isinstance(medium, Dielectric):
            value = concrete_value(medium.permittivity)
        if medium.shape is not None:
            inside = next(distances) < 0
        if value is None:
            return None
        if value.ndim:
            if value.shape != grid.shape:
                return None  # for which `medium_at` has an error
            here = value.take([plane.node - 1, plane.node], axis=plane.axis)
            for k in range(grid.dimension):
                if k != plane.axis:
                    here = here.take(range(plane.low[k], plane.high[k]), axis=k)
            value = here.flat[0] if np.ptp(here) == 0 else np.nan
        epsilon = np.where(inside, value, epsilon)
    return epsilon


def poles_at(
    media: tuple[AbstractMedium, ...], grid: Grid, location: Location, name: str
) -> list[Pole]:
    """The oscillators of the component `name` of E at its points."""
    out = []
    for medium in media:
        if not isinstance(medium, AbstractDispersiveMedium):
            continue
        pole = medium.pole()
        if medium.shape is not None:
            f = coverage(medium.shape, grid, location, AXES.index(name[1])).fraction
            pole = pole._replace(strength=pole.strength * f)
        out.append(pole)
    return out


def _at_points(permittivity: Array, grid: Grid, location: Location) -> Array:
    """A permittivity of the cells, averaged to the points of a component."""
    if permittivity.ndim == 0:
        return permittivity
    if permittivity.shape != grid.shape:
        raise ShapeError(
            f"a permittivity of shape {permittivity.shape} on a grid of {grid.shape} cells: give one number, "
            "or one for each cell"
        )
    beyond = {k: Outflow() for k, wraps in enumerate(grid.periodic) if not wraps}
    field = Field(grid.local(permittivity), grid, None, beyond or None)
    for axis, staggered in enumerate(location.staggered):
        if staggered:
            field = average(field.with_boundary(beyond or None), axis)
    return field.data
