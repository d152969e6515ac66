"""Quasi-geostrophic flow in layers: weather and ocean eddies."""

from collections.abc import Callable
from dataclasses import KW_ONLY

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    ParameterError,
    PyTree,
    ShapeError,
    State,
    as_parameter,
    concrete_value,
    describe,
    get_component,
    param,
    require_nonnegative,
    require_positive,
    scale_array,
    static,
)

from ..._collocation import require_same_grid
from ..._field import Field
from ..._spectrum import Spectrum, derivative_symbol, square_wavenumber
from ._balanced_flow import AbstractBalancedFlow, advect, damping_symbol, require_plane

_FEW_LAYERS = 4


class QuasiGeostrophic(AbstractBalancedFlow):
    """Quasi-geostrophic potential vorticity in n layers, on a β-plane.

        ∂qᵢ/∂t + J(ψᵢ, qᵢ) + Uᵢ ∂qᵢ/∂x + (∂Qᵢ/∂y) ∂ψᵢ/∂x = −ν(−∇²)ᵖ qᵢ − δᵢₙ [μ ∇²ψₙ + J(ψₙ, b) + Uₙ ∂b/∂x]
        qᵢ = ∇²ψᵢ + [sᵢ₋₁ (ψᵢ₋₁ − ψᵢ) + sᵢ (ψᵢ₊₁ − ψᵢ)] / Hᵢ,   s₀ ψ₀ = 0
        ∂Qᵢ/∂y = β − [sᵢ₋₁ (Uᵢ₋₁ − Uᵢ) + sᵢ (Uᵢ₊₁ − Uᵢ)] / Hᵢ

    Layer 1 is the uppermost. The state is one field `[n, x, y]` of q, what the mean flow Uᵢ leaves: jets and
    eddies that a wind shear or a slope of isotherms feeds (baroclinic instability), Rossby waves, turbulence
    on a β-plane. Energy (`energy`) and the squares of each q are conserved where U, μ and ν are 0.

    **Arguments:**

    - `viscosity`: ν ≥ 0, length²ᵖ / time.
    - `depth`: Hᵢ > 0 of each layer, `[n]`; only their ratios to `coupling` matter.
    - `coupling`: sᵢ = f₀²/g′ᵢ ≥ 0 between layers i and i+1, `[n − 1]`, depth / length².
    - `surface`: s₀ = f₀²/g ≥ 0 of a free surface; 0 for a rigid lid. Of one layer 1/L_d² = s₀/H₁.
    - `beta`: β, 1 / (length · time).
    - `mean_flow`: Uᵢ along x, `[n]`, or one number.
    - `drag`: μ ≥ 0, 1 / time: friction of the lowest layer at the ground.
    - `topography`: b = f₀ × height over Hₙ, a scalar field on the same grid, 1 / time; None for a plain.
    - `order`: p ≥ 1; 4 keeps viscosity to the smallest eddies.
    - `component`: the field's name, where the state has several components.

    **Errors:** `ShapeError` unless the field is `[n, x, y]` on a periodic grid; `ParameterError` for depths
    that are not positive.

    **Good values:** `ETDRK4` or `RK4` with max|u + U| dt < h; ν = 10⁻¹⁸ (L/2π)²ᵖ/dt or less with p = 4 on 128
    cells, so that the shortest kept mode decays in some steps.

    **Notes:** U and ν are taken exactly by exponential integrators. The mean of q moves nothing. `two_layers`
    makes the usual pair.

    **Reference:** Vallis, Atmospheric and Oceanic Fluid Dynamics (2017), §5.3, §9.4; Phillips, Tellus 6, 273
    (1954).
    """

    viscosity: Float[Array, ""] = param(0.0)
    depth: Float[Array, " layers"] = param((1.0,))
    coupling: Float[Array, " interfaces"] = param(())
    _: KW_ONLY
    surface: Float[Array, ""] = param(0.0)
    beta: Float[Array, ""] = param(0.0)
    mean_flow: Float[Array, "*layers"] = param(0.0)
    drag: Float[Array, ""] = param(0.0)
    topography: Field | None = None
    order: int = static(default=1)
    component: str | None = static(default=None)

    def __check_init__(self):
        require_nonnegative(self, "viscosity", "coupling", "surface", "drag")
        require_positive(self, "depth")
        n = self.depth.shape[0]
        if self.coupling.shape != (n - 1,) or self.mean_flow.shape not in ((), (n,)):
            raise ShapeError(
                f"{n} layers have {n - 1} interfaces and one mean flow each, or one for all; got coupling of "
                f"shape {self.coupling.shape}, mean_flow of shape {self.mean_flow.shape}"
            )
        if self.order < 1:
            raise ParameterError(f"order must be 1 or more; got {self.order}")

    @classmethod
    def two_layers(
        cls,
        viscosity: ArrayLike,
        deformation_radius: ArrayLike,
        shear: ArrayLike,
        *,
        depth_ratio: ArrayLike = 1.0,
        beta: ArrayLike = 0.0,
        drag: ArrayLike = 0.0,
        topography: Field | None = None,
        order: int = 1,
        component: str | None = None,
    ) -> "QuasiGeostrophic":
        """Two layers whose mean flows differ by `shear` and have no mean (Phillips' model).

            1/L_d² = s₁ (1/H₁ + 1/H₂),   H₁/H₂ = `depth_ratio`,   U₁ − U₂ = `shear`

        The others are arguments of the class.

        **Errors:** `ParameterError` for a `deformation_radius` or `depth_ratio` that is not positive.
        """
        for name, value in (
            ("deformation_radius", deformation_radius),
            ("depth_ratio", depth_ratio),
        ):
            number = concrete_value(value)
            if number is not None and not np.all(number > 0):
                raise ParameterError(f"two_layers: {name} must be positive; got {describe(value)}")
        upper = as_parameter(depth_ratio) / (1 + as_parameter(depth_ratio))
        depth = jnp.stack([upper, 1 - upper])
        coupling = upper * (1 - upper) / as_parameter(deformation_radius) ** 2
        flow = as_parameter(shear) * jnp.stack([1 - upper, -upper])
        return cls(
            viscosity, depth, coupling[None], beta=beta, mean_flow=flow, drag=drag, topography=topography,
            order=order, component=component,
        )  # fmt: skip

    @property
    def layers(self) -> int:
        """n."""
        return self.depth.shape[0]

    def symbol(self, field: Field) -> Array:
        require_plane(field, (self.layers,), type(self).__name__)
        damping = damping_symbol(field.grid, self.viscosity, self.order)
        # −U ∂/∂x: the mean flow carries every wave along, exactly.
        kx = jnp.imag(derivative_symbol(field.grid, 0, 1))
        turning = -self._mean_flow()[:, None, None] * kx[None]
        return jax.lax.complex(*jnp.broadcast_arrays(damping[None], turning))

    def nonlinear(self, clock: Clock, field: Field) -> Spectrum:
        del clock
        require_plane(field, (self.layers,), type(self).__name__)
        grid, spectrum = field.grid, field.spectrum()
        stream = self.stream_coefficients(spectrum)
        bottom = self._topography(field)
        carried = spectrum.coefficients
        if bottom is not None:
            carried = carried.at[-1].add(bottom)
        rate = advect(grid, stream, carried)
        x = derivative_symbol(grid, 0, 1)
        gradient = self.potential_vorticity_gradient()[:, None, None]
        rate = rate - scale_array(scale_array(stream, gradient), x)
        lowest = scale_array(stream[-1], self.drag * square_wavenumber(grid))
        if bottom is not None:
            lowest = lowest - scale_array(scale_array(bottom, self._mean_flow()[-1]), x)
        return spectrum.with_coefficients(rate.at[-1].add(lowest))

    def stream_coefficients(self, spectrum: Spectrum) -> Array:
        # A tridiagonal system for each mode: elimination downwards, substitution upwards.
        k2 = square_wavenumber(spectrum.grid)
        k2 = jnp.where(k2 > 0, k2, 1)
        above, below = self._couplings()
        total = (above + below) / self.depth
        over = jnp.concatenate([jnp.zeros_like(total[:1]), self.coupling]) / self.depth

        def eliminate(upper, layer):
            (factor, rest), (over, under, total, q) = upper, layer
            pivot = 1 / (-k2 - total - over * factor)
            lower = under * pivot, scale_array(q - scale_array(rest, over), pivot)
            return lower, lower

        def substitute(stream, layer):
            factor, rest = layer
            stream = rest - scale_array(stream, factor)
            return stream, stream

        q = spectrum.coefficients
        zero = 0 * k2, jnp.zeros_like(q[0])
        rows = (over, below / self.depth, total, q)
        eliminated = _scan_layers(eliminate, zero, rows)
        return _scan_layers(substitute, zero[1], eliminated, reverse=True)

    def potential_vorticity(self, stream: Field) -> Field:
        """q of a streamfunction `[n, x, y]`."""
        require_plane(stream, (self.layers,), type(self).__name__)
        spectrum = stream.spectrum()
        psi = spectrum.coefficients
        above, below = self._couplings()
        rows = [
            scale_array(psi[i], -square_wavenumber(stream.grid))
            + scale_array((psi[i - 1] if i else 0 * psi[i]) - psi[i], above[i] / self.depth[i])
            + scale_array(psi[min(i + 1, self.layers - 1)] - psi[i], below[i] / self.depth[i])
            for i in range(self.layers)
        ]
        return spectrum.with_coefficients(jnp.stack(rows)).field()

    def potential_vorticity_gradient(self) -> Float[Array, " layers"]:
        """∂Qᵢ/∂y of the mean flow and β, 1 / (length · time)."""
        flow = self._mean_flow()
        # Above a free surface nothing moves.
        over = jnp.concatenate([jnp.zeros_like(flow[:1]), flow[:-1]]) - flow
        under = jnp.concatenate([flow[1:], flow[-1:]]) - flow
        above, below = self._couplings()
        return self.beta - (above * over + below * under) / self.depth

    def energy(self, field: Field) -> Float[Array, ""]:
        """½ Σᵢ ∫ Hᵢ |∇ψᵢ|² + sᵢ (ψᵢ − ψᵢ₊₁)² dA + ½ ∫ s₀ ψ₁² dA = −½ Σᵢ ∫ Hᵢ ψᵢ qᵢ dA of the waves."""
        # ψ has mean 0, so that the mean of q adds nothing.
        density = self.streamfunction(field).data * field.data * self.depth[:, None, None]
        return -0.5 * Field(jnp.sum(density, axis=0), field.grid).integral()

    def _mean_flow(self) -> Float[Array, " layers"]:
        return jnp.broadcast_to(self.mean_flow, self.depth.shape)

    def _couplings(self) -> tuple[Array, Array]:
        """s of each layer's upper and lower interface; below the lowest is the ground."""
        above = jnp.concatenate([self.surface[None], self.coupling])
        return above, jnp.concatenate([self.coupling, jnp.zeros_like(self.depth[:1])])

    def check_state(self, state: State) -> None:
        field, ground = get_component(state, self.component), self.topography
        # Inside a trace the lengths of boxes cannot be seen. Other cells are refused below.
        if (
            ground is not None
            and isinstance(field, Field)
            and field.grid.shape == ground.grid.shape
        ):
            require_same_grid(field.grid, ground.grid)

    def _topography(self, field: Field) -> Array | None:
        if self.topography is None:
            return None
        if self.topography.components or self.topography.grid.shape != field.grid.shape:
            raise ShapeError(
                f"topography is a scalar field on the grid of q, {field.grid.shape}; got "
                f"{self.topography.data.shape}"
            )
        return self.topography.spectrum().coefficients


def _scan_layers(
    function: Callable[[PyTree, PyTree], tuple[PyTree, PyTree]],
    start: PyTree,
    layers: PyTree,
    reverse: bool = False,
) -> PyTree:
    """The results of `jax.lax.scan`. Few layers are cheaper one after the other than in a loop."""
    count = len(jax.tree.leaves(layers)[0])
    if count > _FEW_LAYERS:
        return jax.lax.scan(function, start, layers, reverse=reverse)[1]
    results: list[PyTree] = [None] * count
    for k in reversed(range(count)) if reverse else range(count):
        start, results[k] = function(start, jax.tree.map(lambda x, k=k: x[k], layers))
    return jax.tree.map(lambda *x: jnp.stack(x), *results)
