"""Quantities of flows: energy, enstrophy and dissipation, forces on solids; fluids on lattices."""

import math
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ObserverError, StorageKind, get_component, param, static
from physkit.fields import AbstractEquation, Field, stack
from physkit.fields.equations import (
    AbstractBalancedFlow,
    IncompressibleFlow,
    velocity_from_vorticity,
)
from physkit.fields.lattice_boltzmann import LatticeBoltzmann, Populations
from physkit.fields.operators import Spectral, curl, difference
from physkit.geometry import AXES, Dirichlet

from .._observer import AbstractQuantity
from .._selection import select_term
from .._snapshot import Snapshot
from ._field_quantities import require_field


class FlowEnergy(AbstractQuantity):
    """½⟨|u|²⟩ of a flow: kinetic energy per mass.

    **Arguments:**

    - `component`: the name of the velocity (a vector field) or, in the plane, of the vorticity or what else the
      running equation moves (a scalar), where the state has several components.

    **Returns:** a scalar, length² / time².
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        return _half_square(_velocity(snapshot, self.component))


class Enstrophy(AbstractQuantity):
    """½⟨|ω|²⟩ of a flow; energy is lost at the rate 2ν times this where ∇·u = 0.

    Of a velocity it needs a grid that is periodic along every axis.

    **Arguments:**

    - `component`: the name of the velocity (a vector field) or, in the plane, of the vorticity or what else the
      running equation moves (a scalar), where the state has several components.

    **Returns:** a scalar, 1 / time².
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        flow = require_field(snapshot, self.component)
        is_vorticity = not flow.vector and _balanced_flow(snapshot, self.component) is None
        if is_vorticity:
            return _half_square(_vorticity(flow))
        return _half_square(curl(_velocity(snapshot, self.component), Spectral()))


class Dissipation(AbstractQuantity):
    """ε = −⟨u·L u⟩ of a flow: the rate at which the linear parts of its equations take energy.

    With viscosity alone ν⟨|∇u|²⟩ = 2ν·½⟨|ω|²⟩. The equations are those that the running integrator
    holds, with the parameters that they have there.

    **Arguments:**

    - `component`: the name of the velocity (a vector field) or, in the plane, of the vorticity or what else the
      running equation moves (a scalar), where the state has several components.

    **Returns:** a scalar, length² / time³.

    **Errors:** `ObserverError` when no equation of the flow has a symbol.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        flow = require_field(snapshot, self.component)
        velocity = _velocity(snapshot, self.component)
        terms = [term for term, _ in snapshot.terms()]
        equations = [
            t for t in terms if isinstance(t, AbstractEquation) and t.component == self.component
        ]
        symbols = [symbol for symbol in (t.symbol(flow) for t in equations) if symbol is not None]
        if not symbols:
            raise ObserverError(
                "Dissipation is of an equation with a symbol, e.g. NavierStokes(viscosity); the "
                f"integrator holds {[type(t).__name__ for t in terms]}"
            )
        spectrum = velocity.spectrum()
        # The real part alone: an imaginary symbol, as of rotation or dispersion, takes no energy.
        rates = [spectrum.multiply(symbol.real).field() for symbol in symbols]
        return sum(-jnp.sum((velocity * rate).mean()) for rate in rates)


def _velocity(snapshot: Snapshot, component: str | None) -> Field:
    """The velocity of a flow that is given by it, by its vorticity or by what else a running equation moves.

    **Errors:** `ObserverError` for a flow in several layers, over which there is no one mean.
    """
    flow = require_field(snapshot, component)
    if flow.vector:
        return flow
    law = _balanced_flow(snapshot, component)
    if law is None:
        return velocity_from_vorticity(_vorticity(flow))
    if flow.components not in ((), (1,)):
        raise ObserverError(
            f"{type(law).__name__} moves layers, which this quantity cannot weigh by their depths: observe "
            "a function of the state; the energy is law.energy(state)"
        )
    velocity = law.velocity(flow)
    return stack([part[0] for part in velocity] if flow.components else velocity)


def _vorticity(flow: Field) -> Field:
    """**Errors:** `ObserverError` for a field of several numbers, such as vorticity, divergence and depth."""
    if flow.components:
        raise ObserverError(
            f"expected a velocity, a vector field, or a vorticity; got a field of {list(flow.components)} "
            "numbers: observe a function of the state"
        )
    return flow


def _balanced_flow(snapshot: Snapshot, component: str | None) -> AbstractBalancedFlow | None:
    """The running equation that has a streamfunction of its own for the field called `component`."""
    for term, _ in snapshot.terms():
        if isinstance(term, AbstractBalancedFlow) and term.component == component:
            return term
    return None


def _half_square(field: Field) -> Array:
    """½⟨|u|²⟩, over the volume, summed over components."""
    squares = jnp.sum((field * field).mean())
    return 0.5 * squares


class NusseltNumber(AbstractQuantity):
    """The mean flux of a scalar through a wall, over what diffusion alone would carry across the box.

        Nu = −⟨∂T/∂n⟩ L/ΔT

    1 without flow. As the discretization has it: what enters by one wall leaves by the others, to rounding.

    **Arguments:**

    - `side`: the wall, `"x_low"` or any other.
    - `component`: the name of the temperature, a field at cell centers, or of `Populations` with one, where the
      state has several components.
    - `difference`: ΔT, of the low side of the axis less the high one: positive where flux goes upwards along
      it. If left out that of the walls, where each has one temperature.

    **Returns:** a scalar.

    **Errors:** `ObserverError` where `difference` is left out and a wall has no temperature, or several.

    **Reference:** de Vahl Davis, Int. J. Numer. Methods Fluids 3, 249 (1983).
    """

    side: str = static()
    component: str | None = static(default=None)
    difference: Float[Array, ""] | None = param(None)

    def __check_init__(self):
        name, _, end = self.side.partition("_")
        if name not in AXES or len(name) != 1 or end not in ("low", "high"):
            raise ObserverError(f"a side is called like 'x_low' or 'y_high'; got {self.side!r}")

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        found = get_component(snapshot.state, self.component)
        on_lattice = isinstance(found, Populations)
        field = (
            found.temperature_values() if on_lattice else require_field(snapshot, self.component)
        )
        field = field.at_time(snapshot.clock.t)
        grid = field.grid
        axis, end = grid.axis(self.side[0]), int(self.side.endswith("high"))
        if grid.periodic[axis]:
            raise ObserverError(f"no wall at {self.side}: the box repeats along {self.side[0]}")
        slopes = difference(field, axis).data
        layer = jnp.take(slopes, -end, axis=axis)
        mine = jnp.where(grid.touches_side(axis, end), jnp.sum(layer), 0.0)
        cells = math.prod(n for k, n in enumerate(grid.shape) if k != axis)
        mean = grid.space.comm.psum(mine) / cells
        return -mean * grid.space.lengths[axis] / self._difference(field, axis)

    def _difference(self, field: Field, axis: int) -> Array:
        if self.difference is not None:
            return self.difference
        ends = [
            side.value
            for side in field.boundary[axis] or ()
            if isinstance(side, Dirichlet) and jnp.ndim(side.value) == 0
        ]
        if len(ends) != 2:
            raise ObserverError(
                f"the walls across {AXES[axis]} have not one temperature each: say what flux is compared with, "
                f"NusseltNumber({self.side!r}, …, difference=ΔT)"
            )
        return ends[0] - ends[1]


class SolidForce(AbstractQuantity):
    """The force of a flow on a solid, over the fluid's density: drag and lift.

        F = ∫ (−∇·(uu) − ∇p + ν∇²u) dV over the cells that the solid holds   (IncompressibleFlow)
        F = Σ (e_i − u_w) f_i − (e_ī − u_w) f_ī over the links that its surface cuts   (LatticeBoltzmann)

    What flows into these cells as momentum, pressure and friction, and the friction of those beside them: the
    force on a body at rest, and on one that accelerates but for the momentum that its cells gain. In the plane,
    per length. The drag coefficient of a body of width D in a flow of speed U is 2 Fₓ/(U² D).

    **Arguments:**

    - `component`: the flow's name, where the state has several components.
    - `solid`: which of the solids of the equation, counted from 0.

    **Returns:** `[d]`, length^(d + 1) / time².

    **Errors:** `ObserverError` where the running integrator holds no such solid.

    **Reference:** Noca, Shiels & Jeon, J. Fluids Struct. 13, 551 (1999); Wen et al., J. Comput. Phys. 266, 161
    (2014), eq. 14, on lattices.
    """

    component: str | None = static(default=None)
    solid: int = static(default=0)

    def __call__(self, snapshot: Snapshot) -> Float[Array, " d"]:
        found = [
            term
            for term, _ in snapshot.terms()
            if isinstance(term, IncompressibleFlow | LatticeBoltzmann)
            and term.component == self.component
        ]
        if not found or not 0 <= self.solid < len(found[0].solids):
            raise ObserverError(f"the flow has no solid number {self.solid}")
        return found[0].force_on_solid(snapshot.clock, snapshot.state, self.solid)


class FluidVelocity(AbstractQuantity):
    """The velocity of a fluid on a lattice, with the half of the force that belongs to it.

    **Arguments:**

    - `component`: the name of the populations, where the state has several components.

    **Returns:** `[d, *cells]`, length / time.

    **Errors:** `ObserverError` unless the integrator holds `LatticeBoltzmann` of them.
    """

    component: str | None = static(default=None)
    storage_kind: ClassVar[StorageKind] = StorageKind.FIELD

    def __call__(self, snapshot: Snapshot) -> Float[Array, "..."]:
        equation = require_lattice_boltzmann(snapshot, self.component)
        return equation.velocity(snapshot.state, snapshot.t)


class FluidDensity(AbstractQuantity):
    """The density of a fluid on a lattice.

    **Arguments:**

    - `component`: the name of the populations, where the state has several components.

    **Returns:** `[*cells]`, mass / volume.

    **Errors:** `ObserverError` unless the integrator holds `LatticeBoltzmann` of them.
    """

    component: str | None = static(default=None)
    storage_kind: ClassVar[StorageKind] = StorageKind.FIELD

    def __call__(self, snapshot: Snapshot) -> Float[Array, "..."]:
        return require_lattice_boltzmann(snapshot, self.component).density(snapshot.state)


class FluidPressure(AbstractQuantity):
    """The pressure of a fluid on a lattice over that of reference, and over the density of reference.

    **Arguments:**

    - `component`: the name of the populations, where the state has several components.

    **Returns:** `[*cells]`, length² / time².

    **Errors:** `ObserverError` unless the integrator holds `LatticeBoltzmann` of them.
    """

    component: str | None = static(default=None)
    storage_kind: ClassVar[StorageKind] = StorageKind.FIELD

    def __call__(self, snapshot: Snapshot) -> Float[Array, "..."]:
        return require_lattice_boltzmann(snapshot, self.component).pressure(snapshot.state)


class FluidTemperature(AbstractQuantity):
    """The temperature of a fluid on a lattice.

    **Arguments:**

    - `component`: the name of the populations, where the state has several components.

    **Returns:** `[*cells]`.

    **Errors:** `ObserverError` unless the integrator holds `LatticeBoltzmann` of them; `ComponentError` for a
    fluid without a temperature.
    """

    component: str | None = static(default=None)
    storage_kind: ClassVar[StorageKind] = StorageKind.FIELD

    def __call__(self, snapshot: Snapshot) -> Float[Array, "..."]:
        return require_lattice_boltzmann(snapshot, self.component).temperature(snapshot.state)


def require_lattice_boltzmann(snapshot: Snapshot, component: str | None) -> LatticeBoltzmann:
    """The equation of the populations called `component`, or of the only ones, as it runs.

    **Errors:** `ObserverError` where there is none.
    """
    return select_term(snapshot, LatticeBoltzmann, component, "one LatticeBoltzmann")
