"""The convolutional perfectly matched layer, for any equation of staggered first derivatives."""

from dataclasses import KW_ONLY
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from physkit.core import (
    DeclarationError,
    ParameterError,
    ShapeError,
    param,
    require_nonnegative,
    require_positive,
    scale_array,
    static,
    warn,
)
from physkit.geometry import AXES, Grid, Location

from ...states._layer_memory import LayerMemory
from ._absorbing_layer import (
    AbstractAbsorbingLayer,
    as_sides,
    depth_in_layer,
    require_sides,
    require_walls,
)

Memories: TypeAlias = dict[str, LayerMemory]


class LayerFactors(NamedTuple):
    """What a layer does to a derivative in a step: ψ' = `keep`·ψ + `gain`·∂u, and `stretch`·∂u + ψ' is
    added."""

    keep: Array
    gain: Array
    stretch: Array


class ConvolutionalPML(AbstractAbsorbingLayer):
    """A layer in which coordinates are stretched into the complex plane, so that waves of any angle die out.

        ∂/∂x → (1/s) ∂/∂x,   s = κ + σ/(α − iω)
        (1/s) ∂u/∂x = (1/κ) ∂u/∂x + ψ,   ψ' = b ψ + c ∂u/∂x,   b = e^{−(σ/κ + α) dt},  c = σ (b − 1)/(σκ + κ²α)

    In the layer, d deep of w: σ = σ₀ (d/w)^m, κ = 1 + (κ₀ − 1)(d/w)^m, α = α₀ (1 − d/w). Of a wave it sends
    back some 10⁻⁴ of the amplitude or less. Behind it is the wall.

    **Arguments:**

    - `cells`: the layer's width in cells.
    - `sides`: `("x_low", "y_high", …)`; if left out all that do not repeat, and of a `KSpaceAcoustics`, whose
      box repeats for its transforms, all.
    - `speed`: c of the waves, length / time: σ₀ = `strength` · 0.8 (m + 1) c/h. The largest of the equations
      if left out.
    - `strength`: of absorption, in units of the usual choice.
    - `stretching`: κ₀ ≥ 1, for waves that graze the layer or decay towards it.
    - `shift`: α₀ in units of c/h, for slow waves and those that decay towards the layer.
    - `order`: m.

    **Good values:** 10 cells with all others left alone; in a medium of index n the speed stays that of vacuum.

    **Reference:** Roden & Gedney, Microw. Opt. Technol. Lett. 27, 334 (2000), eqs. 22–27; Gedney, in Taflove &
    Hagness, Computational Electrodynamics (2005), §7.9.
    """

    cells: int = static(default=10)
    _: KW_ONLY  # `Sponge` has the same in another order
    sides: tuple[str, ...] | None = static(
        default=None, converter=lambda x: None if x is None else as_sides(x)
    )
    speed: Float[Array, ""] | None = param(None)
    strength: Float[Array, ""] = param(1.0)
    stretching: Float[Array, ""] = param(1.0)
    shift: Float[Array, ""] = param(0.0)
    order: float = static(default=3.0)

    def __check_init__(self):
        require_sides(self.sides)
        require_positive(self, "strength", "stretching")
        if self.speed is not None:
            require_positive(self, "speed")
        require_nonnegative(self, "shift")
        if self.cells < 1:
            raise ParameterError(f"a layer is at least one cell wide; got {self.cells}")
        if self.cells < 3:
            share = 37 if self.cells == 1 else 13
            warn(
                f"an absorbing layer of {self.cells} cells sends back {share} % of a wave's amplitude, one of "
                "10 cells 0.3 %"
            )

    def sides_of(self, grid: Grid, at_seam: bool = False) -> tuple[str, ...]:
        """The sides that it lines.

        - `at_seam`: whether it stands, too, where the box repeats, on both sides of the seam: for equations
          whose transforms need a box that repeats, though waves should not get through.

        **Errors:** `DeclarationError` for a side that repeats or a box without sides, `ShapeError` where layers
        do not fit.
        """
        sides = self.sides
        if sides is None:
            walls = [AXES[k] for k, wraps in enumerate(grid.periodic) if at_seam or not wraps]
            if not walls:
                raise DeclarationError(
                    "the box repeats along every axis, so that the layer would absorb nothing: "
                    "Grid(Box(lengths, periodic=False), shape) has sides"
                )
            sides = tuple(f"{axis}_{end}" for axis in walls for end in ("low", "high"))
        require_walls(sides, grid, at_seam)
        for side in sides:
            axis = grid.axis(side[0])
            opposite = [s for s in sides if s[0] == side[0] and s != side]
            # Of several devices along an axis each has one of its sides.
            is_alone = grid.space.comm.axis_size(axis) > 1 or not opposite
            if grid.local_shape[axis] < (1 if is_alone else 2) * self.cells:
                where = " and ".join((side, *opposite))
                raise ShapeError(
                    f"absorbing layers of {self.cells} cells at {where} do not fit into "
                    f"{grid.local_shape[axis]} cells (of each device)"
                )
        return sides

    def memory(
        self, name: str, grid: Grid, location: Location, like: Array, at_seam: bool = False
    ) -> Memories:
        """What it remembers of the derivatives that end at `location` and are called `name`, 0 at the start.

        One for each side, called like "Ez x_low".
        """
        out = {}
        for side in self.sides_of(grid, at_seam):
            axis = grid.axis(side[0])
            shape = list(like.shape)
            shape[axis] = self.cells
            out[f"{name} {side}"] = LayerMemory(
                jnp.zeros(shape, like.dtype),
                axis,
                int(side.endswith("high")),
                grid.includes_walls(location),
            )
        return out

    def factors(
        self, grid: Grid, location: Location, side: str, dt: ArrayLike, speed: ArrayLike
    ) -> LayerFactors:
        """What the layer along `side` does in a step of length `dt`, at its points at `location`.

        - `speed`: of the waves, where the layer was given none.
        """
        axis = grid.axis(side[0])
        h = grid.spacing[axis]
        points = _layer(
            depth_in_layer(grid, location, side, self.cells * h),
            axis,
            int(side.endswith("high")),
            self.cells,
        )
        rate = (speed if self.speed is None else self.speed) / h
        # Where the depth is 0 a power has no derivative.
        inside = jnp.where(points > 0, points, 1) ** self.order * (points > 0).astype(points.dtype)
        sigma = self.strength * (0.8 * (self.order + 1)) * rate * inside
        kappa = 1 + (self.stretching - 1) * inside
        alpha = self.shift * rate * (1 - points)
        decay = sigma / kappa + alpha
        keep = jnp.exp(-decay * dt)
        # c = (σ/κ²) (b − 1)/(σ/κ + α), without 0/0 where both are 0.
        safe = jnp.where(decay > 0, decay, 1)
        gain = jnp.where(decay > 0, sigma / kappa**2 * jnp.expm1(-decay * dt) / safe, 0)
        # Blocks in the middle of the domain have layers that do nothing.
        here = grid.touches_side(axis, int(side.endswith("high")))
        stretch = 1 / kappa - 1
        if here is not True:
            keep, gain, stretch = (jnp.where(here, x, 0) for x in (keep, gain, stretch))
        return LayerFactors(keep, gain, stretch)

    def absorb(
        self,
        slope: Array,
        axis: int,
        memories: dict[str, tuple[LayerMemory, LayerFactors]],
    ) -> tuple[Array, Memories]:
        """The derivative `slope` along `axis` as the layers stretch it, and what they remember then."""
        new = {}
        for name, (memory, factors) in memories.items():
            near = _layer(slope, axis, memory.side, self.cells)
            psi = scale_array(memory.values, factors.keep) + scale_array(near, factors.gain)
            start = [0] * slope.ndim
            start[axis] = slope.shape[axis] - self.cells if memory.side else 0
            slope = jax.lax.dynamic_update_slice(
                slope, near + scale_array(near, factors.stretch) + psi, start
            )
            new[name] = memory.with_values(psi)
        return slope, new


def _layer(x: Array, axis: int, side: int, cells: int) -> Array:
    """The points of `x` in the layer at one end of `axis`."""
    n = x.shape[axis]
    first = n - cells if side else 0
    return jax.lax.slice_in_dim(x, first, first + cells, axis=axis)
