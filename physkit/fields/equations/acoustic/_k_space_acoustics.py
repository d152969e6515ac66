"""Sound in fluids, by Fourier transforms with a correction that makes time steps exact."""

from dataclasses import KW_ONLY
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    DeclarationError,
    NotReversible,
    ParameterError,
    Rate,
    ShapeError,
    State,
    concrete_value,
    describe,
    param,
    replace_fields,
    require_positive,
    safe_max,
    scale_array,
    static,
)
from physkit.geometry import Grid

from ..._field import Field
from ..._field_increment import FieldIncrement
from ..._spectrum import square_wavenumber
from ...operators import average
from ...states._acoustic_field import AcousticField
from .._requirements import as_tuple
from .._source_checks import require_sources
from .._staggered_wave import AbstractStaggeredWave, HalfStep, Increments
from ..absorbing._convolutional_pml import ConvolutionalPML, LayerFactors, Memories
from ._acoustic_sources import AbstractAcousticSource
from ._power_law_absorption import AbsorptionPlan, PowerLawAbsorption


class AcousticPlan(NamedTuple):
    """What fluid, sources and layers come to on a grid.

    - `correction`: κ over modes, `bend`: −κ²k². `to_faces`: per axis ik e^{−ikh/2}, ready to broadcast.
    - `specific_volume`: 1/ρ on the faces, by component of the velocity.
    - `density`, `square_speed`: of the cells. `profiles`: of sources, over the cells.
    """

    correction: Array
    bend: Array
    to_faces: tuple[Array, ...]
    specific_volume: dict[str, Array]
    density: Array
    square_speed: Array
    absorption: AbsorptionPlan | None
    profiles: tuple[Array, ...]
    layers: dict[str, LayerFactors]


class KSpaceAcoustics(AbstractStaggeredWave):
    """Sound in a fluid at rest, for `AcousticField`: on a line, in the plane and in space.

        ∂u/∂t = −∇p/ρ₀
        ∂ρ/∂t = −ρ₀ ∇·u + S,   p = c²ρ (with `absorption` more)

    Derivatives by Fourier transforms, with κ = sin(c̃k dt/2)/(c̃k dt/2) times each: in a homogeneous fluid of
    c = c̃ waves are exact for steps of any length up to the limit. `integrators.StaggeredLeapfrog(acoustics)`
    steps it; without layer and absorption `RK4(acoustics)` and the like do, too, with κ = 1.

    **Arguments:**

    - `speed`: c, a number or one for each cell, `[*cells]`.
    - `density`: ρ₀, likewise; on faces the mean of both sides.
    - `absorption`: a `PowerLawAbsorption`.
    - `sources`: `PointSource`, `ExtendedSource`.
    - `layer`: a `ConvolutionalPML` along sides: the box repeats for its transforms, and waves that leave it
      come in on the other side unless a layer takes them.
    - `reference_speed`: c̃; the largest c if left out.
    - `component`: the field's name, where the state has several components.

    **Good values:** 4 cells in the shortest wavelength, dt = 0.3 h/c (in a homogeneous fluid up to
    `longest_step(grid)`); `ConvolutionalPML(20, order=4.0)`.

    **Errors:** `StepSizeError` for a dt beyond the limit, `ParameterError` for a source outside of the box.

    **Reference:** Tabei, Mast & Waag, J. Acoust. Soc. Am. 111, 53 (2002); Treeby & Cox, J. Biomed. Opt. 15,
    021314 (2010), eqs. 3–10 (scheme); Cox et al., IEEE IUS (2018) (sources).
    """

    speed: Float[Array, "..."] = param(1.0)
    density: Float[Array, "..."] = param(1.0)
    _: KW_ONLY
    absorption: PowerLawAbsorption | None = None
    sources: tuple[AbstractAcousticSource, ...] = eqx.field(default=(), converter=as_tuple)
    layer: ConvolutionalPML | None = None
    reference_speed: Float[Array, ""] | None = param(None)
    component: str | None = static(default=None)
    field_type = AcousticField

    def __check_init__(self):
        require_positive(self, "speed", "density")
        if self.reference_speed is not None:
            require_positive(self, "reference_speed")
        require_sources(self.sources, AbstractAcousticSource, "PointSource and ExtendedSource")
        if not isinstance(self.absorption, PowerLawAbsorption | None):
            raise DeclarationError(
                f"absorption is PowerLawAbsorption(…); got {describe(self.absorption)}"
            )

    # --- states -------------------------------------------------------------------------------------

    def add_memory(self, field: AcousticField) -> AcousticField:
        """`field` with what the layer and absorption remember: a state for this equation.

        **Errors:** those of `ConvolutionalPML.sides_of`.
        """
        axes = tuple(range(field.grid.dimension))
        ends = {"pressure": axes} | {n: (k,) for k, n in enumerate(field.velocity)}
        memory = self.layer_memory(field, ends, at_seam=True)
        if self.absorption is not None:
            field = field.with_absorption()
        return replace_fields(field, {"memory": memory}) if self.layer is not None else field

    def check_state(self, state: State) -> None:
        field = self.field(state)
        self.check_sources(field.grid)
        fluid = {"speed": self.speed, "density": self.density}
        if self.absorption is not None:
            fluid["coefficient of absorption"] = self.absorption.coefficient
        for name, values in fluid.items():
            if values.ndim and values.shape != field.grid.shape:
                raise ShapeError(
                    f"a {name} of shape {values.shape} on a grid of {field.grid.shape} cells: give one number, "
                    "or one for each cell"
                )
        has_absorption = field.elastic_pressure is not None
        if (has_absorption, field.memory is not None) != (
            self.absorption is not None,
            self.layer is not None,
        ):
            raise ShapeError(
                "the field has another memory than these equations, which have "
                f"{'no' if self.absorption is None else 'an'} absorption and "
                f"{'no' if self.layer is None else 'an'} absorbing layer: start from "
                "acoustics.add_memory(field)"
            )

    # --- steps --------------------------------------------------------------------------------------

    @property
    def fewest_cells(self) -> float:
        """Sources at points fade below that."""
        return 3.0

    def speed_range(self) -> tuple[float, float] | None:
        speed = concrete_value(self.speed)
        is_known = speed is not None
        return (float(np.min(speed)), float(np.max(speed))) if is_known else None

    @property
    def half_steps(self) -> tuple[HalfStep, HalfStep]:
        return self.velocity_increments, self.pressure_increments

    def longest_step(self, grid: Grid) -> float:
        """The longest stable step: of the shortest wave, k = π√Σ 1/h², with q = 4 (c/c̃)² sin²(c̃k dt/2),

            q (1 + ε) + 2qb < 4,   c̃k dt < π

        where absorption makes it stiffer by ε and b dt = 2α₀c^{y−1}k^{y−2}; without it and with c̃ = c the
        limit is dt = 1/(c√Σ 1/h²).

        **Errors:** `ParameterError` where numbers are hidden by a trace.
        """
        numbers = [
            concrete_value(x) for x in (self.speed, self.reference_speed, grid.space.lengths)
        ]
        is_hidden = any(x is None for x in (numbers[0], numbers[2]))
        if is_hidden or (self.reference_speed is not None and numbers[1] is None):
            raise ParameterError("the longest step is a number: ask for it outside of jit and grad")
        c = float(np.max(numbers[0]))
        reference = c if numbers[1] is None else float(numbers[1])
        h = np.asarray(numbers[2], float) / grid.shape
        k = np.pi * np.sqrt(np.sum(1 / h**2))
        stiffer, damping = self._absorption_rates(c, k)
        low, high = 0.0, np.pi / (reference * k)

        def is_stable(dt: float) -> bool:
            q = 4 * (c / reference * np.sin(0.5 * reference * k * dt)) ** 2
            return bool(q * (1 + stiffer) + 2 * q * damping / dt <= 4 * (1 + 1e-12))

        if is_stable(high):
            return high
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if is_stable(middle) else (low, middle)
        return low

    def _absorption_rates(self, c: float, k: float) -> tuple[float, float]:
        """How much stiffer absorption makes waves of wavenumber k, relatively; and b dt, a time."""
        if self.absorption is None:
            return 0.0, 0.0
        alpha, y = (
            concrete_value(x) for x in (self.absorption.coefficient, self.absorption.exponent)
        )
        if alpha is None or y is None:
            raise ParameterError("the longest step is a number: ask for it outside of jit and grad")
        a, y = float(np.max(alpha)), float(y)
        stiffer = -2 * a * c**y * np.tan(0.5 * np.pi * y) * k ** (y - 1)
        return max(stiffer, 0.0), 2 * a * c ** (y - 1) * k ** (y - 2)

    def prepare(self, state: State, dt: Array) -> AcousticPlan:
        """Fluid, sources and layers on the grid, for steps of length `dt`."""
        field = self.field(state)
        reference = safe_max(self.speed) if self.reference_speed is None else self.reference_speed
        k2 = square_wavenumber(field.grid)
        turn = 0.5 * reference * dt * jnp.sqrt(jnp.where(k2 > 0, k2, 1))
        correction = jnp.where(k2 > 0, jnp.sin(turn) / turn, 1)
        plan = self._plan(field, correction)
        # A source acts in the middle of a step: what the step makes of it is divided by cos(ω dt/2).
        of_sources = jnp.where(k2 > 0, jnp.cos(turn), 1)
        grid = field.grid
        profiles = tuple(
            grid.ifft(scale_array(grid.fft(source.profile(grid)), of_sources * source.window(grid)))
            for source in self.sources
        )
        layers = self.layer_factors(field, dt, safe_max(self.speed))
        return plan._replace(profiles=profiles, layers=layers)

    def velocity_increments(
        self, plan: AcousticPlan, clock: Clock, field: AcousticField
    ) -> tuple[Increments, Memories]:
        """What a step adds to the velocity, from the pressure at `clock.t`; what layers remember then."""
        out, memory = {}, {}
        dt = self.velocity_step(clock)
        slopes = self._gradient(plan, field)
        for k, (name, part) in enumerate(field.velocity.items()):
            slope, new = self.absorb(plan.layers, field, name, k, slopes[k])
            memory |= new
            push = scale_array(slope, -dt * plan.specific_volume[name])
            out[name] = FieldIncrement(push, part.location)
        return out, memory

    def pressure_increments(
        self, plan: AcousticPlan, clock: Clock, field: AcousticField
    ) -> tuple[Increments, Memories]:
        """What a step adds to pressures, from the velocity half a step after `clock.t`; what layers
        remember."""
        grid = field.grid
        divergence, memory = self._divergence(plan, field)
        growth = -plan.density * divergence  # ∂ρ/∂t but for sources
        middle, rate = clock.at_fraction(0.5), growth
        for source, profile in zip(self.sources, plan.profiles, strict=True):
            rate = rate + profile * source.strength(middle).astype(profile.dtype)
        change = plan.square_speed * clock.dt * rate
        part = plan.absorption
        if part is None or field.elastic_pressure is None:
            return {"pressure": FieldIncrement(change, grid.cell)}, memory
        elastic = field.elastic_pressure.data + change
        growth, late = grid.fft(jnp.stack([growth, elastic]))
        # The growth is that of half a step ago: ∂²ρ/∂t² = ∇²p brings it to now.
        growth = growth + scale_array(late, plan.bend * 0.5 * clock.dt)
        waves = [
            scale_array(growth, part.damping_symbol),
            scale_array(late, part.dispersion_symbol),
        ]
        damped, dispersed = grid.ifft(jnp.stack(waves))
        after = elastic + part.damping * damped + part.dispersion * dispersed
        increments = {
            "pressure": FieldIncrement(after - field.parts()["pressure"].data, grid.cell),
            "elastic_pressure": FieldIncrement(change, grid.cell),
        }
        return increments, memory

    def rate(self, clock: Clock, state: State) -> Rate:
        self.require_no_layer()
        if self.absorption is not None:
            raise DeclarationError("absorption needs integrators.StaggeredLeapfrog(acoustics)")
        field = self.field(state)
        plan = self._plan(field, jnp.ones((), field.grid.spacing.dtype))
        slopes = self._gradient(plan, field)
        rates = {
            name: FieldIncrement(-slopes[k] * plan.specific_volume[name], part.location)
            for k, (name, part) in enumerate(field.velocity.items())
        }
        growth = -plan.density * self._divergence(plan, field)[0]
        for source in self.sources:
            profile = source.profile(field.grid)
            growth = growth + profile * source.strength(clock).astype(profile.dtype)
        rates["pressure"] = FieldIncrement(plan.square_speed * growth, field.grid.cell)
        return rates if self.component is None else {self.component: rates}

    def require_reversible(self, state: State) -> None:
        """**Errors:** `NotReversible` names what absorbs."""
        super().require_reversible(state)
        if self.absorption is not None:
            raise NotReversible(
                "PowerLawAbsorption absorbs, and what is lost cannot be brought back: use "
                "adjoint=NestedCheckpoint() or Binomial(n)"
            )

    def energy(self, clock: Clock, state: State) -> Float[Array, ""]:
        field = self.field(state)
        plan = self.prepare(state, clock.dt)
        increments, _ = self.velocity_increments(plan, clock, field)
        elastic = field.elastic_pressure
        elastic = field.parts()["pressure"] if elastic is None else elastic
        stored = elastic.data**2 / (plan.density * plan.square_speed)
        kinetic = self.kinetic_energy(clock, field, increments, plan.specific_volume)
        return kinetic + 0.5 * elastic.replace(data=stored).integral()

    # --- inside -------------------------------------------------------------------------------------

    def _plan(self, field: AcousticField, correction: Array) -> AcousticPlan:
        grid = field.grid
        speed, density = (grid.local(x) if x.ndim else x for x in (self.speed, self.density))
        to_faces = []
        for k, h in zip(grid.wavenumbers(), grid.spacing):
            half = 0.5 * k * h
            to_faces.append(lax.complex(k * jnp.sin(half), k * jnp.cos(half)))
        volumes = {}
        for axis, name in enumerate(field.velocity):
            on_faces = average(Field(density, grid), axis).data if density.ndim else density
            volumes[name] = 1 / on_faces
        absorption = None if self.absorption is None else self.absorption.plan(grid, speed)
        return AcousticPlan(
            correction,
            -square_wavenumber(grid) * correction**2,
            tuple(to_faces),
            volumes,
            density,
            speed**2,
            absorption,
            (),
            {},
        )

    def _gradient(self, plan: AcousticPlan, field: AcousticField) -> Array:
        """∂p/∂x on the faces, `[d, *points]`."""
        waves = scale_array(field.grid.fft(field.parts()["pressure"].data), plan.correction)
        return field.grid.ifft(jnp.stack([waves * symbol for symbol in plan.to_faces]))

    def _divergence(self, plan: AcousticPlan, field: AcousticField) -> tuple[Array, Memories]:
        """∇·u in the cells, as layers stretch it; what they remember."""
        grid, memory = field.grid, {}
        waves = grid.fft(jnp.stack([part.data for part in field.velocity.values()]))
        # Back from the faces: −(ik e^{−ikh/2})*.
        slopes = [-waves[k] * jnp.conj(s) for k, s in enumerate(plan.to_faces)]
        if self.layer is None:
            return grid.ifft(scale_array(sum(slopes[1:], slopes[0]), plan.correction)), memory
        parts = grid.ifft(scale_array(jnp.stack(slopes), plan.correction))
        total = None
        for axis in range(grid.dimension):
            slope, new = self.absorb(plan.layers, field, "pressure", axis, parts[axis])
            memory |= new
            total = slope if total is None else total + slope
        return total, memory
