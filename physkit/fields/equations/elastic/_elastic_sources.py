"""Sources of elastic waves: forces and moments at points."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, Module, ShapeError, param
from physkit.geometry import AXES, Grid

from ..._point_spread import hat, hat_by_volume
from ...states._elastic_field import elastic_place
from .._source_checks import require_before_layer, require_inside
from ..absorbing._convolutional_pml import ConvolutionalPML
from ..electromagnetism._waveforms import as_waveform


class AbstractElasticSource(Module):
    """Something that drives a solid: ρ ∂v/∂t = ∇·σ + f,  ∂σ/∂t = C:∇v − Ṁ."""

    @abc.abstractmethod
    def add_to_rate(self, rate: Array, clock: Clock, grid: Grid, name: str) -> Array:
        """∇·σ + f where `name` is a component of the velocity, C:∇v − Ṁ where it is one of the stress."""

    @abc.abstractmethod
    def check_grid(self, grid: Grid) -> None:
        """**Errors:** where the source does not fit the grid."""

    def check_layer(self, grid: Grid, layer: ConvolutionalPML | None) -> None:
        """**Errors:** where the source does not work within the absorbing layer."""
        del grid, layer


class PointForce(AbstractElasticSource):
    """A force at a point: a hammer, a vibrating plate.

        f(x, t) = F s(t) δ(x − x₀)

    In the plane it is a force along a line, per length. Shared between the nearest points, linearly.

    **Arguments:**

    - `position`: x₀, `[d]`.
    - `force`: F, `[d]`, force.
    - `waveform`: s(t): a function of time, such as `WavePulse`.

    **Errors:** `ShapeError` for a position or force with another number of entries than the grid has axes;
    `ParameterError` for a position outside of the box or within an absorbing layer.

    **Reference:** Aki & Richards, Quantitative Seismology (2002), §4.2.
    """

    position: Float[Array, " d"] = param()
    force: Float[Array, " d"] = param()
    waveform: Module = eqx.field(converter=as_waveform)

    def check_grid(self, grid: Grid) -> None:
        require_inside(self.position, grid, "a force")
        if self.force.shape != (grid.dimension,):
            raise ShapeError(
                f"a force on this grid is [{grid.dimension}]; got {list(self.force.shape)}"
            )

    def check_layer(self, grid: Grid, layer: ConvolutionalPML | None) -> None:
        require_before_layer(self.position, grid, layer, "a force")

    def add_to_rate(self, rate: Array, clock: Clock, grid: Grid, name: str) -> Array:
        kind, _, letters = name.partition("_")
        if kind != "velocity":
            return rate
        strength = self.force[AXES.index(letters)] * self.waveform(clock.t)
        # On a free surface the volume of a velocity is half a cell, which takes all of the force.
        spread = _spread(strength, self.position, grid, name, hat_by_volume)
        return rate + spread.astype(rate.dtype)


class MomentSource(AbstractElasticSource):
    """A moment tensor at a point: an explosion, a slip on a fault.

        ∂σ/∂t = … − M s(t) δ(x − x₀)

    M = M₀ I is an explosion; M = M₀ (n sᵀ + s nᵀ) a slip along s on a plane across n.

    **Arguments:**

    - `position`: x₀, `[d]`.
    - `moment`: M, `[d d]`, symmetric; energy (in the plane per length).
    - `waveform`: s(t), 1 / time: the rate at which the moment is released.

    **Errors:** `ShapeError` for another shape; `ParameterError` for a position outside of the box or within
    an absorbing layer.

    **Reference:** Aki & Richards, Quantitative Seismology (2002), §3.3.
    """

    position: Float[Array, " d"] = param()
    moment: Float[Array, "d d"] = param()
    waveform: Module = eqx.field(converter=as_waveform)

    def check_grid(self, grid: Grid) -> None:
        require_inside(self.position, grid, "a moment")
        if self.moment.shape != (grid.dimension,) * 2:
            raise ShapeError(
                f"a moment on this grid is {[grid.dimension] * 2}; got {list(self.moment.shape)}"
            )

    def check_layer(self, grid: Grid, layer: ConvolutionalPML | None) -> None:
        require_before_layer(self.position, grid, layer, "a moment")

    def add_to_rate(self, rate: Array, clock: Clock, grid: Grid, name: str) -> Array:
        kind, _, letters = name.partition("_")
        if kind != "stress":
            return rate
        i, j = (AXES.index(a) for a in letters)
        strength = 0.5 * (self.moment[i, j] + self.moment[j, i]) * self.waveform(clock.t)
        return rate - _spread(strength, self.position, grid, name).astype(rate.dtype)


def _spread(
    strength: Array, position: Array, grid: Grid, name: str, along: Callable[..., Array] = hat
) -> Array:
    place, total = elastic_place(name, grid), strength
    for k in range(grid.dimension):
        total = total * along(grid, place, k, position[k])
    return jnp.asarray(total)
