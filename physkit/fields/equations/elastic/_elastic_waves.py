"""Elastic waves in solids, by staggered finite differences of velocity and stress."""

from dataclasses import KW_ONLY
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    ParameterError,
    Rate,
    ShapeError,
    State,
    concrete_value,
    param,
    recomputed,
    replace_fields,
    require_nonnegative,
    require_positive,
    safe_max,
    scale_array,
    show_numbers,
    static,
    warn,
)
from physkit.geometry import AXES, Grid, Outflow

from ..._field_increment import FieldIncrement
from ...operators import difference
from ...states._elastic_field import ElasticField
from .._requirements import as_tuple
from .._source_checks import require_sources
from .._staggered_wave import AbstractStaggeredWave, HalfStep, Increments
from ..absorbing._convolutional_pml import ConvolutionalPML, LayerFactors, Memories
from ._cell_means import harmonic_mean_of_cells, mean_of_cells
from ._elastic_sources import AbstractElasticSource


class ElasticPlan(NamedTuple):
    """What a solid and layers come to on a grid.

    - `lame_lambda`, `stiffness`: λ and λ + 2μ in the cells. `shear`: μ where shear stresses sit, by name.
    - `specific_volume`: 1/ρ on the faces, by component of the velocity.
    """

    lame_lambda: Array
    stiffness: Array
    shear: dict[str, Array]
    specific_volume: dict[str, Array]
    layers: dict[str, LayerFactors]


class ElasticWaves(AbstractStaggeredWave):
    """Elastic waves in an isotropic solid, for `ElasticField`: in the plane (plane strain) and in space.

        ρ ∂v/∂t = ∇·σ + f
        ∂σ/∂t = λ (∇·v) I + μ (∇v + ∇vᵀ) − Ṁ

    P waves run at √((λ + 2μ)/ρ), S waves at √(μ/ρ); where μ = 0 it is a fluid. Staggered differences;
    `integrators.StaggeredLeapfrog(waves)` steps it; without a layer `RK4(waves)` and the like do, too.

    **Arguments:**

    - `lame_lambda`, `lame_mu`: λ and μ ≥ 0, with dλ + 2μ > 0 in d dimensions: numbers, or one for each cell,
      `[*cells]`; `ElasticWaves.from_speeds` takes speeds. Between cells the mean of 1/μ and of ρ.
    - `density`: ρ, likewise.
    - `sources`: `PointForce`, `MomentSource`.
    - `layer`: a `ConvolutionalPML` in front of sides.
    - `order`: of the differences, 4 or 2; at sides 2.
    - `component`: the field's name, where the state has several components.

    **Good values:** 6 cells in the shortest S wavelength for order 4, 10 for order 2 (twice as many along a
    free surface); dt = 0.9 · `longest_step(grid)`.

    **Errors:** `ParameterError` for λ + 2μ ≤ 0 and for a source outside of the box; `StepSizeError` for a dt
    beyond Courant's limit.

    **Reference:** Virieux, Geophysics 51, 889 (1986), eqs. 1–7; Levander, Geophysics 53, 1425 (1988) (order 4,
    free surface); Moczo et al., Bull. Seismol. Soc. Am. 92, 3042 (2002) (means).
    """

    lame_lambda: Float[Array, "..."] = param(1.0)
    lame_mu: Float[Array, "..."] = param(1.0)
    density: Float[Array, "..."] = param(1.0)
    _: KW_ONLY
    sources: tuple[AbstractElasticSource, ...] = eqx.field(default=(), converter=as_tuple)
    layer: ConvolutionalPML | None = None
    order: int = static(default=4)
    component: str | None = static(default=None)
    field_type = ElasticField

    def __check_init__(self):
        require_positive(self, "density")
        require_nonnegative(self, "lame_mu")
        self._require_stable("λ + 2μ", 1, "P waves would grow")
        if self.order not in (2, 4):
            raise ParameterError(f"differences are of order 2 or 4; got {self.order}")
        require_sources(self.sources, AbstractElasticSource, "PointForce and MomentSource")

    @staticmethod
    def from_speeds(
        p_speed: ArrayLike,
        s_speed: ArrayLike,
        density: ArrayLike = 1.0,
        *,
        sources: object = (),
        layer: ConvolutionalPML | None = None,
        order: int = 4,
        component: str | None = None,
    ) -> "ElasticWaves":
        """A solid from the speeds of its waves: μ = ρc_s², λ = ρ(c_p² − 2c_s²).

        **Errors:** `ParameterError` for S waves as fast as P waves.
        """
        p, s, rho = (jnp.asarray(x, float) for x in (p_speed, s_speed, density))
        fast, slow = concrete_value(p), concrete_value(s)
        if fast is not None and slow is not None and np.any(fast <= slow):
            raise ParameterError(
                "P waves are faster than S waves in every solid: from_speeds(p_speed, s_speed, density); got "
                f"{show_numbers(fast)} and {show_numbers(slow)}"
            )
        return ElasticWaves(
            rho * (p**2 - 2 * s**2),
            rho * s**2,
            rho,
            sources=sources,
            layer=layer,
            order=order,
            component=component,
        )

    # --- states -------------------------------------------------------------------------------------

    def add_memory(self, field: ElasticField) -> ElasticField:
        """`field` with what the layer remembers: a state for this equation.

        **Errors:** those of `ConvolutionalPML.sides_of`.
        """
        if self.layer is None:
            return field
        axes = tuple(range(field.grid.dimension))
        ends = dict.fromkeys(field.velocity, axes)
        # Of stresses those derivatives that end there: ∂v_x/∂x at σ_xx, ∂v_x/∂y and ∂v_y/∂x at σ_xy.
        ends |= {n: tuple(sorted({AXES.index(a) for a in n[-2:]})) for n in field.stress}
        return replace_fields(field, {"memory": self.layer_memory(field, ends, at_seam=False)})

    def check_state(self, state: State) -> None:
        field = self.field(state)
        self.check_sources(field.grid)
        for name in ("lame_lambda", "lame_mu", "density"):
            values = getattr(self, name)
            if values.ndim and values.shape != field.grid.shape:
                raise ShapeError(
                    f"{name} of shape {values.shape} on a grid of {field.grid.shape} cells: give one number, "
                    f"or one for each cell"
                )
        d = field.grid.dimension
        self._require_stable(f"{d}λ + 2μ", d, "squeezing the solid would free energy")
        if (field.memory is None) != (self.layer is None):
            raise ShapeError(
                f"these equations have {'no' if self.layer is None else 'an'} absorbing layer, the field "
                f"{'none' if field.memory is None else 'one'}: start from waves.add_memory(field)"
            )
        self._warn_of_covered_surface(field)

    # --- steps --------------------------------------------------------------------------------------

    @property
    def fewest_cells(self) -> float:
        """Half of what `Good values` say."""
        return 3.0 if self.order == 4 else 5.0

    def speed_range(self) -> tuple[float, float] | None:
        numbers = [concrete_value(x) for x in (self.lame_lambda, self.lame_mu, self.density)]
        if any(x is None for x in numbers):
            return None
        lame, mu, density = (np.asarray(x, float) for x in numbers)
        pressure = np.sqrt((lame + 2 * mu) / density)
        # A fluid has no S waves.
        slowest = np.where(mu > 0, np.sqrt(mu / density), pressure)
        return float(np.min(slowest)), float(np.max(pressure))

    @property
    def half_steps(self) -> tuple[HalfStep, HalfStep]:
        return self.velocity_increments, self.stress_increments

    def longest_step(self, grid: Grid) -> float:
        """Courant's limit, dt c_p √Σ 1/h² < 1, for order 4 times 6/7.

        Where the density varies c_p² is (λ + 2μ) times the mean of 1/ρ on both sides.

        **Errors:** `ParameterError` where numbers are hidden by a trace.
        """
        arrays = (self.lame_lambda, self.lame_mu, self.density, grid.space.lengths)
        numbers = [concrete_value(x) for x in arrays]
        if any(x is None for x in numbers):
            raise ParameterError("the longest step is a number: ask for it outside of jit and grad")
        lame, mu, density, lengths = (np.asarray(x, float) for x in numbers)
        square = 0.0
        for k, n in enumerate(grid.shape):
            volume = 1 / density
            if density.ndim:
                mode = "wrap" if grid.periodic[k] else "edge"
                wide = np.pad(density, [(int(j == k),) * 2 for j in range(density.ndim)], mode=mode)
                ends = np.moveaxis(wide, k, 0)
                faces = 2 / (ends[1:] + ends[:-1])
                volume = np.moveaxis(0.5 * (faces[1:] + faces[:-1]), 0, k)
            square = square + (lame + 2 * mu) * volume * (n / lengths[k]) ** 2
        limit = float(1 / np.sqrt(np.max(square)))
        return limit if self.order == 2 else 6 / 7 * limit

    def prepare(self, state: State, dt: Array) -> ElasticPlan:
        """Solid and layers on the grid, for steps of length `dt`."""
        field = self.field(state)
        grid = field.grid
        lame, mu, rho = (
            grid.local(x) if x.ndim else x for x in (self.lame_lambda, self.lame_mu, self.density)
        )
        volumes = {
            name: 1 / mean_of_cells(rho, grid, (axis,)) for axis, name in enumerate(field.velocity)
        }
        shear = {
            name: harmonic_mean_of_cells(mu, grid, tuple(AXES.index(a) for a in name[-2:]))
            for name in field.stress
            if name[-1] != name[-2]
        }
        # Over the whole domain: a device sees the parameters of all.
        fastest = jnp.sqrt(safe_max((self.lame_lambda + 2 * self.lame_mu) / self.density))
        layers = self.layer_factors(field, dt, fastest)
        return ElasticPlan(lame, lame + 2 * mu, shear, volumes, layers)

    def velocity_increments(
        self, plan: ElasticPlan, clock: Clock, field: ElasticField
    ) -> tuple[Increments, Memories]:
        """What a step adds to the velocity, from the stress at `clock.t`; what layers remember then."""
        out, dt = {}, self.velocity_step(clock)
        pushes, memory = self._pushes(plan, clock, field)
        for name, push in pushes.items():
            values = scale_array(push, dt * plan.specific_volume[name])
            out[name] = FieldIncrement(values, field.velocity[name].location)
        return out, memory

    def stress_increments(
        self, plan: ElasticPlan, clock: Clock, field: ElasticField
    ) -> tuple[Increments, Memories]:
        """What a step adds to the stress, from the velocity half a step after `clock.t`; what layers
        remember."""
        strains, memory = self._strain_rates(plan, field)
        middle = clock.at_fraction(0.5)

        # For its derivative by dt, moduli and sources, strains are enough.
        @recomputed
        def increments(strains: dict[str, Array]) -> dict[str, Array]:
            rates = self._stress_rates(plan, middle, field, strains)
            return {name: scale_array(rate, clock.dt) for name, rate in rates.items()}

        out = {
            name: FieldIncrement(values, field.stress[name].location)
            for name, values in increments(strains).items()
        }
        return out, memory

    def rate(self, clock: Clock, state: State) -> Rate:
        self.require_no_layer()
        field = self.field(state)
        plan = self.prepare(state, clock.dt)
        pushes, _ = self._pushes(plan, clock, field)
        rates = {name: push * plan.specific_volume[name] for name, push in pushes.items()}
        strains, _ = self._strain_rates(plan, field)
        rates |= self._stress_rates(plan, clock, field, strains)
        parts = field.parts()
        increments = {n: FieldIncrement(r, parts[n].location) for n, r in rates.items()}
        return increments if self.component is None else {self.component: increments}

    def energy(self, clock: Clock, state: State) -> Float[Array, ""]:
        field = self.field(state)
        plan = self.prepare(state, clock.dt)
        increments, _ = self.velocity_increments(plan, clock, field)
        d = field.grid.dimension
        shear = 0.5 * (plan.stiffness - plan.lame_lambda)
        normal = [p for n, p in field.stress.items() if n[-1] == n[-2]]
        mean = sum(p.data for p in normal) / d
        # Squeezing, then shear; a fluid has none of it.
        stored = d * mean**2 / (2 * (d * plan.lame_lambda + 2 * shear))
        stored = stored + sum(_quotient((p.data - mean) ** 2, 4 * shear) for p in normal)
        total = normal[0].replace(data=stored).integral()
        for name, mu in plan.shear.items():
            part = field.stress[name]
            total = total + part.replace(data=_quotient(part.data**2, 2 * mu)).integral()
        return self.kinetic_energy(clock, field, increments, plan.specific_volume) + total

    # --- inside -------------------------------------------------------------------------------------

    def _warn_of_covered_surface(self, field: ElasticField) -> None:
        """Warn of a free surface beside held sides, where a layer takes all waves before they reach it."""
        boundary = next(iter(field.velocity.values())).boundary
        if self.layer is None or boundary is None:
            return
        lined = self.layer.sides_of(field.grid)
        ends = {side: boundary[AXES.index(side[0])] or (None, None) for side in lined}
        free = [side for side in lined if isinstance(ends[side][side.endswith("high")], Outflow)]
        if free and len(free) < len(lined):
            warn(
                f"the absorbing layer covers the free surface at {', '.join(free)}, which no wave then "
                f"reaches: ConvolutionalPML(…, sides={tuple(side for side in lined if side not in free)})"
            )

    def _require_stable(self, what: str, factor: int, why: str) -> None:
        """**Errors:** `ParameterError` unless `factor`·λ + 2μ is positive, where its numbers can be seen."""
        lame, mu = concrete_value(self.lame_lambda), concrete_value(self.lame_mu)
        if lame is None or mu is None or not lame.dtype.kind == mu.dtype.kind == "f":
            return
        if lame.ndim and mu.ndim and lame.shape != mu.shape:
            raise ShapeError(
                f"lame_lambda is of shape {lame.shape}, lame_mu of {mu.shape}: one number for each cell"
            )
        values = factor * lame + 2 * mu
        if (values <= 0).any():
            raise ParameterError(
                f"ElasticWaves: {what} must be positive, or {why}; the smallest is {values.min():g}"
            )

    def _pushes(
        self, plan: ElasticPlan, clock: Clock, field: ElasticField
    ) -> tuple[dict[str, Array], Memories]:
        """∇·σ + f by component of the velocity; what layers remember."""
        out, memory = {}, {}
        for name in field.velocity:
            total = None
            for axis in range(field.grid.dimension):
                letters = "".join(sorted(name[-1] + AXES[axis]))
                slope, new = self._slope(plan, field, f"stress_{letters}", name, axis)
                memory |= new
                total = slope if total is None else total + slope
            for source in self.sources:
                total = recomputed(source.add_to_rate)(total, clock, field.grid, name)
            out[name] = total
        return out, memory

    def _strain_rates(
        self, plan: ElasticPlan, field: ElasticField
    ) -> tuple[dict[str, Array], Memories]:
        """∂vₐ/∂xₐ, and of shear ∂vₐ/∂x_b + ∂v_b/∂xₐ, by component of the stress; what layers remember."""
        out, memory = {}, {}
        for name in field.stress:
            a, b = name[-2:]
            rate, new = self._slope(plan, field, f"velocity_{a}", name, AXES.index(b))
            memory |= new
            if a != b:
                other, new = self._slope(plan, field, f"velocity_{b}", name, AXES.index(a))
                memory |= new
                rate = rate + other
            out[name] = rate
        return out, memory

    def _stress_rates(
        self, plan: ElasticPlan, clock: Clock, field: ElasticField, strains: dict[str, Array]
    ) -> dict[str, Array]:
        """∂σ/∂t by component, of rates of strain and of sources at `clock.t`."""
        normal = [strain for name, strain in strains.items() if name[-1] == name[-2]]
        pressure = plan.lame_lambda * sum(normal)
        out = {}
        for name, strain in strains.items():
            if name[-1] == name[-2]:
                rate = pressure + (plan.stiffness - plan.lame_lambda) * strain
            else:
                rate = plan.shear[name] * strain
            for source in self.sources:
                rate = recomputed(source.add_to_rate)(rate, clock, field.grid, name)
            out[name] = rate
        return out

    def _slope(
        self, plan: ElasticPlan, field: ElasticField, of: str, ends_at: str, axis: int
    ) -> tuple[Array, Memories]:
        slope = difference(getattr(field, of), axis, self.order).data
        return self.absorb(plan.layers, field, ends_at, axis, slope)


def _quotient(top: Array, bottom: Array) -> Array:
    """top / bottom, 0 where there is nothing to divide by."""
    return jnp.where(bottom > 0, top / jnp.where(bottom > 0, bottom, 1), 0)
