"""Maxwell's equations on Yee's grid."""

from dataclasses import KW_ONLY
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    DeclarationError,
    NotReversible,
    ParameterError,
    Rate,
    State,
    StepSizeError,
    concrete_value,
    describe,
    param,
    phi_functions,
    recomputed,
    replace_fields,
    require_positive,
    scale_array,
    static,
)
from physkit.geometry import AXES, Grid

from ..._field import Field
from ..._field_increment import FieldIncrement
from ...operators import half_cell_neighbors
from ...states._electromagnetic_field import ElectromagneticField
from .._requirements import as_tuple
from ..absorbing._absorbed_wave import AbstractAbsorbedWave
from ..absorbing._convolutional_pml import ConvolutionalPML, LayerFactors, Memories
from ._maxwell_checks import check_memory, check_sources
from ._media import (
    AbstractDispersiveMedium,
    AbstractMedium,
    Medium,
    Pole,
    medium_at,
    poles_at,
)
from ._rates import fastest_rate, known_fastest_decay, known_fastest_rate
from ._sources import AbstractSource

Increments: TypeAlias = dict[str, FieldIncrement]


class MaxwellPlan(NamedTuple):
    """What media, layers and sources come to on a grid: by component of E, by derivative and side, each.

    - `decay`: of components of E and J that something damps, how much of a push a step keeps.
    """

    media: dict[str, Medium]
    poles: dict[str, Pole | None]
    decay: dict[str, Array]
    layers: dict[str, LayerFactors]
    sources: tuple[AbstractSource, ...]


class Maxwell(AbstractAbsorbedWave):
    """Maxwell's equations, for `ElectromagneticField`: on a line, in the plane and in space.

        μ₀ ∂H/∂t = −∇×E
        ε₀ε ∂E/∂t = ∇×H − σE − Σ J_p − J
        ∂P/∂t = J_p,   ∂J_p/∂t = ε₀ s E − ω₀² P − γ J_p      for every oscillator p of dispersive media

    Staggered differences of second order: ∇·H stays what it was, to rounding, and where nothing conducts ∇·D,
    too. `integrators.Yee(maxwell)` steps it, also where a conductor stops a field within a step. Without a
    layer `RK4(maxwell)` and the like do, too, with dt below 2.7 ε₀ε/σ.

    **Arguments:**

    - `media`: what fills space: `Dielectric`, `Drude`, `Lorentz`; vacuum if left out. Later ones lie over
      those before; dispersive ones add to the dielectric where they are.
    - `sources`: `PointDipole`, `CurrentSheet`, `PlaneWave`.
    - `layer`: a `ConvolutionalPML` in front of sides.
    - `vacuum_permittivity`, `vacuum_permeability`: ε₀ and μ₀: 1 if left out, so that c = 1 and the impedance of
      vacuum is 1. In SI units 8.8541878128e-12 and 1.25663706212e-6.
    - `wavevector`: k, `[d]`, for Bloch waves in a box that repeats: E = u(x) e^{ik·x} with u periodic. The
      complex field of the state is then u.
    - `component`: the field's name, where the state has several components.

    **Good values:** 20 cells a wavelength in the densest medium for errors of a percent;
    dt = 0.99 · `longest_step(grid)`.

    **Errors:** `StepSizeError` for a dt beyond Courant's limit; those of sources.

    **Reference:** Yee, IEEE Trans. Antennas Propag. 14, 302 (1966); Taflove & Hagness, Computational
    Electrodynamics (2005), §3 (scheme), §4 (dispersion, stability), §9 (dispersive media).
    """

    media: tuple[AbstractMedium, ...] = eqx.field(default=(), converter=as_tuple)
    sources: tuple[AbstractSource, ...] = eqx.field(default=(), converter=as_tuple)
    layer: ConvolutionalPML | None = None
    _: KW_ONLY
    vacuum_permittivity: Float[Array, ""] = param(1.0)
    vacuum_permeability: Float[Array, ""] = param(1.0)
    wavevector: Float[Array, " d"] | None = param(None)
    component: str | None = static(default=None)
    field_type = ElectromagneticField

    def __check_init__(self):
        require_positive(self, "vacuum_permittivity", "vacuum_permeability")
        for what, kind, parts in (
            ("media are Dielectric, Drude and Lorentz", AbstractMedium, self.media),
            ("sources are PointDipole, CurrentSheet and their like", AbstractSource, self.sources),
        ):
            for part in parts:
                if not isinstance(part, kind):
                    raise DeclarationError(f"{what}; got {describe(part)}")

    # --- states -------------------------------------------------------------------------------------

    @property
    def num_poles(self) -> int:
        """Number of oscillators of dispersive media."""
        return sum(isinstance(m, AbstractDispersiveMedium) for m in self.media)

    def add_memory(self, field: ElectromagneticField) -> ElectromagneticField:
        """`field` with what media and layers remember, which is nothing yet: a state for this equation.

        **Errors:** those of `ConvolutionalPML.sides_of`.
        """
        if self.num_poles:
            field = field.with_poles(self.num_poles)
        if self.layer is None:
            return field
        derivatives = {
            name: tuple(j for j, _, _ in _curl_terms(field, name))
            for name in (*field.electric, *field.magnetic)
        }
        return replace_fields(field, {"memory": self.layer_memory(field, derivatives)})

    def check_state(self, state: State) -> None:
        field = self.field(state)
        check_sources(self, field)
        check_memory(self, field)

    # --- steps --------------------------------------------------------------------------------------

    def longest_step(self, grid: Grid) -> float:
        """Courant's limit: steps must be shorter.

            dt² (4 c²/ε Σ 1/h² + ω_p²/ε + ω₀²) < 4

        **Errors:** `ParameterError` where numbers are hidden by a trace.
        """
        rate = known_fastest_rate(self, grid)
        if rate is None:
            raise ParameterError("the longest step is a number: ask for it outside of jit and grad")
        return 2 / rate

    def check_step(self, state: State, dt: Float[Array, ""]) -> None:
        rate, step = known_fastest_rate(self, self.field(state).grid), concrete_value(dt)
        if rate is not None and step is not None and float(step) * rate > 2 * (1 + 1e-5):
            raise StepSizeError(
                f"dt = {float(step):.6g} is beyond Courant's limit of {2 / rate:.6g}: the field would blow up. "
                "Take dt = 0.99 * maxwell.longest_step(grid)"
            )

    def max_signal_rate(self, clock: Clock, state: State) -> Float[Array, ""]:
        """Half the largest rate of the field: dt times it is at most 1. In a vacuum c √Σ 1/h²."""
        del clock
        return 0.5 * fastest_rate(self, self.field(state).grid)

    def stiffest_rate(self, state: State) -> complex | None:
        grid = self.field(state).grid
        rate, decay = known_fastest_rate(self, grid), known_fastest_decay(self, grid)
        if rate is None or decay is None:
            return None
        return complex(-decay) if decay > rate else 1j * rate

    def prepare(self, state: State, dt: Array) -> MaxwellPlan:
        """Media, layers and sources on the grid, for steps of length `dt`."""
        field = self.field(state)
        grid, media, poles, decay = field.grid, {}, {}, {}
        for name, part in field.electric.items():
            media[name] = epsilon, sigma = medium_at(self.media, grid, part.location, name)
            found = poles_at(self.media, grid, part.location, name)
            poles[name] = pole = _stack_poles(found, grid) if found else None
            if sigma is not None:
                decay[name] = _mean_decay(dt * sigma / (self.vacuum_permittivity * epsilon))
            if pole is not None and pole.damping is not None:
                decay["J" + name[1]] = _mean_decay(dt * pole.damping)
        layers = self.layer_factors(field, dt, self._vacuum_speed)
        sources = tuple(source.prepare(grid, dt) for source in self.sources)
        return MaxwellPlan(media, poles, decay, layers, sources)

    def magnetic_increments(
        self, plan: MaxwellPlan, clock: Clock, field: ElectromagneticField
    ) -> tuple[Increments, Memories]:
        """What a step adds to H and J, from E and P at `clock.t`; what layers remember then."""
        out, memory = {}, {}
        scale = clock.dt / self.vacuum_permeability
        for name, part in field.magnetic.items():
            curl, new = self._curl(plan, clock, field, name)
            out[name] = FieldIncrement(scale_array(curl, -scale), part.location)
            memory |= new
        for name, part in field.electric.items():
            pole = plan.poles[name]
            if pole is None:
                continue
            push = self._push_of_pole(pole, field, name[1])
            scale = clock.dt * plan.decay.get("J" + name[1], 1.0)
            out["J" + name[1]] = FieldIncrement(scale_array(push, scale), part.location)
        return out, memory

    def electric_increments(
        self,
        plan: MaxwellPlan,
        clock: Clock,
        field: ElectromagneticField,
        currents: dict[str, Array] | None = None,
    ) -> tuple[Increments, Memories]:
        """What a step adds to E and P, from H and J half a step after `clock.t`; what layers remember then.

        `currents`: of charges, by component of E.
        """
        out, memory = {}, {}
        middle = clock.at_fraction(0.5)
        for name, part in field.electric.items():
            growth, new = self._electric_rate(plan, middle, field, name, currents)
            memory |= new
            if plan.poles[name] is not None:
                current = getattr(field, "J" + name[1]).data
                out["P" + name[1]] = FieldIncrement(scale_array(current, clock.dt), part.location)
            # In a conductor E falls exponentially towards what drives it: also where it falls within a step.
            scale = clock.dt * plan.decay.get(name, 1.0)
            out[name] = FieldIncrement(scale_array(growth, scale), part.location)
        return out, memory

    def rate(self, clock: Clock, state: State) -> Rate:
        if self.layer is not None:
            raise DeclarationError("an absorbing layer needs integrators.Yee(maxwell)")
        field = self.field(state)
        plan = self.prepare(state, clock.dt)
        rates: dict[str, FieldIncrement] = {}
        for name, part in field.parts().items():
            if name[0] == "H":
                curl = self._curl(plan, clock, field, name)[0]
                values = scale_array(curl, -1 / self.vacuum_permeability)
            elif name[0] == "P":
                values = getattr(field, "J" + name[1]).data
            elif name[0] == "J":
                values = self._push_of_pole(plan.poles["E" + name[1]], field, name[1])
            else:
                values = self._electric_rate(plan, clock, field, name)[0]
            rates[name] = FieldIncrement(values, part.location)
        return rates if self.component is None else {self.component: rates}

    def require_reversible(self, state: State) -> None:
        """**Errors:** `NotReversible` names what absorbs."""
        del state
        losses = [m for m in self.media if getattr(m, "conductivity", None) is not None]
        losses += [m for m in self.media if getattr(m, "damping", None) is not None]
        losses += [] if self.layer is None else [self.layer]
        if losses:
            raise NotReversible(
                f"{type(losses[0]).__name__} absorbs, and what is lost cannot be brought back: use "
                "adjoint=NestedCheckpoint() or Binomial(n)"
            )
        if self.wavevector is not None:
            raise NotReversible(
                "Bloch waves are complex, and have no fixed-point form: use adjoint=NestedCheckpoint()"
            )

    # --- inside -------------------------------------------------------------------------------------

    @property
    def _vacuum_speed(self) -> Array:
        return 1 / jnp.sqrt(self.vacuum_permittivity * self.vacuum_permeability)

    def _push_of_pole(self, pole: Pole, field: ElectromagneticField, axis: str) -> Array:
        """∂J/∂t of the oscillators along an axis."""
        electric, current, polarization = (getattr(field, kind + axis).data for kind in "EJP")
        push = scale_array(electric[None], self.vacuum_permittivity * pole.strength)
        push = push - scale_array(polarization, pole.frequency_squared)
        return push if pole.damping is None else push - scale_array(current, pole.damping)

    def _electric_rate(
        self,
        plan: MaxwellPlan,
        clock: Clock,
        field: ElectromagneticField,
        name: str,
        currents: dict[str, Array] | None = None,
    ) -> tuple[Array, Memories]:
        """∂E/∂t of one component; what layers remember then."""
        curl, memory = self._curl(plan, clock, field, name)
        if currents is not None and name in currents:
            curl = curl - currents[name]
        if plan.poles[name] is not None:
            curl = curl - jnp.sum(getattr(field, "J" + name[1]).data, axis=0)
        epsilon, sigma = plan.media[name]
        if sigma is not None:
            curl = curl - scale_array(getattr(field, name).data, sigma)
        return scale_array(curl, 1 / (self.vacuum_permittivity * epsilon)), memory

    def _curl(
        self, plan: MaxwellPlan, clock: Clock, field: ElectromagneticField, name: str
    ) -> tuple[Array, Memories]:
        """The curl that moves `name`, with sources at `clock.t`; what layers remember then."""
        total, memory = None, {}
        for axis, source, sign in _curl_terms(field, name):
            slope = self._slope(source, axis)
            slope, new = self.absorb(plan.layers, field, name, axis, slope)
            memory |= new
            if total is None:
                total = slope if sign > 0 else -slope
            else:
                total = total + slope if sign > 0 else total - slope
        for source in plan.sources:
            total = recomputed(source.add_to_curl)(total, clock, field.grid, name)
        return total, memory

    def _slope(self, u: Field, axis: int) -> Array:
        """∂u/∂x half a cell along `axis`; of Bloch waves e^{−ik·x} ∂/∂x (e^{ik·x} u)."""
        low, high = half_cell_neighbors(u, axis)
        h = u.grid.spacing[axis]
        if self.wavevector is not None:
            angle = 0.5 * self.wavevector[axis] * h
            turn = lax.complex(jnp.cos(angle), jnp.sin(angle))
            low, high = low * jnp.conj(turn), high * turn
        return scale_array(high - low, 1 / h)


def _mean_decay(x: Array) -> Array:
    """The mean of e^{−xs} over 0 < s < 1: what is left of a push in a step that damps it by e^{−x}."""
    return phi_functions(-x)[0]


def _curl_terms(field: ElectromagneticField, name: str) -> list[tuple[int, Field, int]]:
    """(axis, component, sign) of the derivatives in the curl that moves `name`: H moves E, E moves H."""
    i = AXES.index(name[1])
    other = "H" if name[0] == "E" else "E"
    pairs = (((i + 1) % 3, (i + 2) % 3, 1), ((i + 2) % 3, (i + 1) % 3, -1))
    terms = [(axis, getattr(field, other + AXES[k]), sign) for axis, k, sign in pairs]
    return [t for t in terms if t[0] < field.grid.dimension and t[1] is not None]


def _stack_poles(poles: list[Pole], grid: Grid) -> Pole:
    """Oscillators side by side, `[poles, *points]` or `[poles, 1, …]`."""

    def column(values: list[Array]) -> Array:
        return jnp.stack(values).reshape(-1, *[1] * grid.dimension)

    strengths = [p.strength for p in poles]
    if any(s.ndim for s in strengths):
        shape = next(s.shape for s in strengths if s.ndim)
        strength = jnp.stack([jnp.broadcast_to(s, shape) for s in strengths])
    else:
        strength = column(strengths)
    damping = None
    if any(p.damping is not None for p in poles):
        zero = jnp.zeros_like(poles[0].frequency_squared)
        damping = column([zero if p.damping is None else p.damping for p in poles])
    return Pole(strength, column([p.frequency_squared for p in poles]), damping)
