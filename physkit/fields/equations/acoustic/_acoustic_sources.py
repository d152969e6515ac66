"""Sources of sound: fluid that comes in at a point or over a region."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, Module, ShapeError, call_user_function, param, recomputed, static
from physkit.geometry import AXES, Grid

from ..._point_spread import band_limited
from .._source_checks import require_before_layer, require_inside
from ..absorbing._convolutional_pml import ConvolutionalPML
from ..electromagnetism._waveforms import as_waveform


class AbstractAcousticSource(Module):
    """Mass that comes in: ∂ρ/∂t = −ρ₀∇·u + S,  S(x, t) = `profile(x)` · `waveform(t)`."""

    waveform: eqx.AbstractVar[Module]

    @abc.abstractmethod
    def profile(self, grid: Grid) -> Array:
        """Where it comes in, over this device's cells."""

    def strength(self, clock: Clock) -> Array:
        """Its waveform at the time of the clock."""
        # A formula of a few numbers, which for a derivative are not worth keeping.
        return recomputed(lambda clock: self.waveform(clock.t))(clock)

    def window(self, grid: Grid) -> Array:
        """What its waves are multiplied by, mode by mode."""
        return jnp.ones((), grid.spacing.dtype)

    @abc.abstractmethod
    def check_grid(self, grid: Grid) -> None:
        """**Errors:** where the source does not fit the grid."""

    def check_layer(self, grid: Grid, layer: ConvolutionalPML | None) -> None:
        """**Errors:** where the source does not work within the absorbing layer."""
        del grid, layer


class PointSource(AbstractAcousticSource):
    """A monopole: fluid that comes in at a point.

        S(x, t) = q(t) δ(x − x₀),   in space p = q'(t − r/c)/4πr

    In the plane it is a line, on a line a sheet. Waves of 5 cells and more are those of a point, which need not
    lie on a grid point; shorter ones fade. Nearer than 8 cells the pressure is that of a body some cells wide.

    **Arguments:**

    - `position`: x₀, `[d]`.
    - `waveform`: q(t): a function of time, such as `WavePulse`; mass / time (in the plane and per length of the
      line).

    **Errors:** `ShapeError` for a position with another number of entries than the grid has axes;
    `ParameterError` for one outside of the box or within an absorbing layer.

    **Reference:** Pierce, Acoustics (2019), §4.3.
    """

    position: Float[Array, " d"] = param()
    waveform: Module = eqx.field(converter=as_waveform)

    def check_grid(self, grid: Grid) -> None:
        require_inside(self.position, grid, "a source")

    def check_layer(self, grid: Grid, layer: ConvolutionalPML | None) -> None:
        require_before_layer(self.position, grid, layer, "a source", at_seam=True)

    def profile(self, grid: Grid) -> Array:
        total = band_limited(grid, grid.cell, 0, self.position[0])
        for k in range(1, grid.dimension):
            total = total * band_limited(grid, grid.cell, k, self.position[k])
        return total

    def window(self, grid: Grid) -> Array:
        # Cut off sharply at the shortest wave, the field near the source would ripple far around it.
        square = sum((k * h / jnp.pi) ** 2 for k, h in zip(grid.wavenumbers(), grid.spacing))
        return 0.5 * jax.lax.erfc((jnp.sqrt(square + 1e-12) - 0.7) / 0.12)


class ExtendedSource(AbstractAcousticSource):
    """Fluid that comes in over a region: a piston, the elements of a transducer.

        S(x, t) = w(x) s(t)

    **Arguments:**

    - `weight`: w, `[*cells]` or a function of the coordinates.
    - `waveform`: s(t): a function of time, density / time.

    **Notes:** a layer one cell thick sends p = ½ c h w s(t − x/c) to both sides.
    """

    weight: Float[Array, "..."] | None = param(None)
    weight_function: Callable | None = static(default=None)
    waveform: Module = eqx.field(converter=as_waveform)

    def __init__(self, weight: Array | Callable, waveform: Module | Callable):
        is_function = callable(weight) and not hasattr(weight, "dtype")
        self.weight = None if is_function else jnp.asarray(weight, float)
        self.weight_function = weight if is_function else None
        self.waveform = as_waveform(waveform)

    def check_grid(self, grid: Grid) -> None:
        if self.weight is not None and self.weight.shape != grid.shape:
            raise ShapeError(
                f"the weight of a source has one number for each cell, {grid.shape}; got {self.weight.shape}"
            )

    def profile(self, grid: Grid) -> Array:
        if self.weight_function is None:
            return grid.local(self.weight)
        signature = f"({', '.join(AXES[: grid.dimension])})"
        values = call_user_function(
            self.weight_function, tuple(grid.coordinates()), "a source's weight", signature
        )
        return jnp.broadcast_to(jnp.asarray(values, grid.spacing.dtype), grid.local_shape)
