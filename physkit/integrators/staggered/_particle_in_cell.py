"""Electromagnetic particle-in-cell: charges and the field that they make, and that moves them."""

from dataclasses import KW_ONLY

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import (
    Clock,
    ParameterError,
    Plan,
    ShapeError,
    State,
    get_component,
    put_component,
    replace_fields,
    scale_array,
)
from physkit.coupling import (
    CIC,
    AbstractKernel,
    deposit,
    deposit_current,
    interpolate,
    require_box_of_grid,
)
from physkit.fields import ElectromagneticField, Field
from physkit.fields.equations import Maxwell
from physkit.fields.operators import average, difference, staggered_divergence
from physkit.geometry import AXES, Location
from physkit.particles import Particles

from .._integrator import AbstractStateless, Drifts, StepSize
from ._pushers import AbstractPusher, HigueraCary
from ._relativistic_motion import charged_particles, push_and_drift


def _as_names(given: object) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)  # type: ignore[arg-type]


class ParticleInCell(AbstractStateless):
    """Charges in the electromagnetic field that they make: particle-in-cell on Yee's grid. Order 2.

        H' = H − dt/μ ∇×E
        u' = push(u, E(x), ½μ(H + H')(x)),   x' = x + dt u'/γ
        E' = E + dt/ε (∇×H' − J(x → x'))

    The state is a dict of the field and of one or more species of particles, whose `velocity` holds u = γv,
    momentum per mass, half a step behind x, as H is behind E. J is Esirkepov's: Gauss's law holds to rounding
    if it does at the start (`with_gauss_law`), and what is missing then stays as a charge at rest: ions that do
    not move need no particles.

    **Arguments:**

    - `maxwell`: the equations, with `component=` the field's name in the state.
    - `species`: names of the particle components.
    - `pusher`: `HigueraCary()` (if left out), `Vay()`, `RelativisticBoris()`.
    - `kernel`: the particles' shape: `CIC()` (if left out), `TSC()`, `PCS()`.

    **Errors:** `ShapeError` on a line, and in the plane for a field that is not `mode="TE"`: charges move in
    the plane, and Ez is not of it. `ParameterError` for sides that do not repeat, and for complex fields and
    Bloch waves. `StepSizeError` beyond Courant's limit.

    **Good values:** cells of one or two Debye lengths with `CIC()`, of three with `PCS()` (coarser ones heat
    the plasma), ten particles a cell and more; dt = 0.9 · `maxwell.longest_step(grid)`, and ω_p dt < 0.3.

    **Notes:** fields are averaged to the nodes and read there. Fast beams ring by numerical Cherenkov
    radiation, as short waves on the grid are slower than light.

    **Reference:** Birdsall & Langdon (1991), chapter 15; Esirkepov, Comput. Phys. Commun. 135, 144 (2001).
    """

    maxwell: Maxwell
    species: tuple[str, ...] = eqx.field(static=True, converter=_as_names)
    _: KW_ONLY
    pusher: AbstractPusher = HigueraCary()
    kernel: AbstractKernel = CIC()

    def __check_init__(self):
        if self.maxwell.component is None:
            raise ParameterError(
                'the field is one of several components here: give it a name, Maxwell(…, component="light")'
            )
        if self.maxwell.wavevector is not None:
            raise ParameterError(
                "Bloch waves are complex, and charges move in real fields: particle-in-cell takes no wavevector"
            )
        if not self.species or self.maxwell.component in self.species:
            raise ParameterError(
                f"species are the names of the particles in the state; got {self.species}"
            )

    @property
    def drifts(self) -> Drifts:
        return tuple((type(self).__name__, name) for name in self.species)

    @property
    def speed_of_light(self) -> Array:
        """c = 1/√(ε₀μ₀)."""
        return 1 / jnp.sqrt(self.maxwell.vacuum_permittivity * self.maxwell.vacuum_permeability)

    @property
    def staggers_time(self) -> bool:
        return True

    @property
    def proper_velocity_components(self) -> tuple[str | None, ...]:
        return tuple(self.species)

    def prepare(self, state: State, dt: StepSize) -> Plan:
        field = self.maxwell.field(state)
        field.grid.require_periodic("electromagnetic particle-in-cell")
        if not next(iter(field.electric.values())).is_real:
            raise ParameterError(
                "charges move in real fields: make the field without dtype=complex"
            )
        if "Ex" not in field.electric or "Ey" not in field.electric:
            raise ShapeError(
                'charges move in the field\'s plane: give it mode="TE" (Ex, Ey, Hz), or three dimensions; on a '
                f"line take a plane a few cells wide. Got {', '.join(field.parts())}"
            )
        for name in self.species:
            charged_particles(self, state, name)
        return self.maxwell.prepare(state, dt)

    def check_step(self, state: State, dt: StepSize) -> None:
        self.maxwell.check_step(state, dt)
        grid = self.maxwell.field(state).grid
        for name in self.species:
            require_box_of_grid(
                charged_particles(self, state, name).space, grid, type(self).__name__
            )

    def step(self, plan: Plan, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        field = self.maxwell.field(state)
        delta, memory = self.maxwell.magnetic_increments(plan, clock, field)
        # H at the time of E: the mean of half a step before and after.
        centered = field.shift(jax.tree.map(lambda x: 0.5 * x, delta))
        at_nodes = _at_nodes(centered, self.maxwell.vacuum_permeability)
        field = _remember(field.shift(delta), memory)
        currents: dict[str, Array] = {}
        for name in self.species:
            before = get_component(state, name)
            after = self._push(clock, at_nodes, before)
            parts = deposit_current(before.charge, before, after, clock.dt, field.grid, self.kernel)
            for axis, part in zip(AXES, parts, strict=False):
                known = currents.get("E" + axis)
                currents["E" + axis] = part.data if known is None else known + part.data
            state = put_component(state, name, after)
        delta, memory = self.maxwell.electric_increments(plan, clock, field, currents)
        return put_component(
            state, self.maxwell.component, _remember(field.shift(delta), memory)
        ), aux

    # --- Gauss's law --------------------------------------------------------------------------------

    def charge_density(self, state: State) -> Field:
        """ρ of all species at the nodes of the grid."""
        grid = self.maxwell.field(state).grid
        nodes = Location((True,) * grid.dimension)
        parts = []
        for name in self.species:
            p = charged_particles(self, state, name)
            parts.append(deposit(p.charge, p, grid, self.kernel, location=nodes))
        return sum(parts[1:], parts[0])

    def gauss_residual(self, state: State) -> Field:
        """∇·D − ρ at the nodes, D = ε₀εE + P: the charge that is there and is no particle's.

        Steps do not change it, but where media conduct.
        """
        charge, field = self.charge_density(state), self.maxwell.field(state)
        permittivity, flow = self._permittivity(state), []
        for name, part in field.electric.items():
            values = permittivity[name] * part.data
            polarization = getattr(field, "P" + name[1])
            if polarization is not None:
                values = values + jnp.sum(polarization.data, axis=0)
            flow.append(part.with_values(values))
        return staggered_divergence(flow) - charge

    def with_gauss_law(self, state: State, background: Field | None = None) -> State:
        """`state` with −∇φ added to E, such that ∇·D = ρ + `background`.

        **Arguments:** `background`: charge density at rest at the nodes; if left out a uniform one that
        neutralizes the box. Its mean must be minus that of ρ; what differs is taken out.

        **Errors:** `ParameterError` for a permittivity that depends on place.
        """
        permittivity = self._permittivity(state)
        if any(x.ndim for x in permittivity.values()):
            raise ParameterError(
                "with_gauss_law solves for E in a uniform medium, and here ε depends on place: start with "
                "charges that neutralize each other cell by cell, or with an E of your own"
            )
        residual = self.gauss_residual(state)
        if background is not None:
            residual = residual - background
        field = self.maxwell.field(state)
        grid = field.grid
        squares = 0.0
        for k, n in enumerate(grid.shape):
            sine = grid.map_modes(k, lambda m, n=n: 2 * np.sin(np.pi * m / n))
            squares = squares + (jnp.asarray(sine, grid.spacing.dtype) / grid.spacing[k]) ** 2
        is_wave = squares > 0
        # ∇²φ = residual/ε₀ε, with the differences of Yee's grid.
        inverse = jnp.where(is_wave, -1 / jnp.where(is_wave, squares, 1), 0)
        modes = scale_array(grid.fft(residual.data), inverse)
        potential = residual.with_values(grid.ifft(modes))
        parts = {
            name: part.with_values(part.data - difference(potential, k).data / permittivity[name])
            for k, (name, part) in enumerate(field.electric.items())
        }
        return put_component(state, self.maxwell.component, field.replace(parts))

    # --- inside -------------------------------------------------------------------------------------

    def _permittivity(self, state: State) -> dict[str, Array]:
        """ε₀ε of every component of E."""
        dtype = next(iter(self.maxwell.field(state).electric.values())).real_dtype
        plan = self.maxwell.prepare(state, jnp.ones((), dtype))
        # Outside of a simulation parameters may be of another precision.
        vacuum = self.maxwell.vacuum_permittivity.astype(dtype)
        return {
            name: vacuum * medium.permittivity.astype(dtype) for name, medium in plan.media.items()
        }

    def _push(self, clock: Clock, at_nodes: Field, particles: Particles) -> Particles:
        rows = interpolate(at_nodes, particles, self.kernel)
        e, b = jnp.split(rows, [particles.dimension], axis=1)
        dt = clock.dt
        return push_and_drift(self.pusher, particles, e, b, dt, dt, self.speed_of_light)


def _at_nodes(field: ElectromagneticField, permeability: Array) -> Field:
    """E and B, `[components, *nodes]`: each the mean of the points about the node."""
    out = []
    for name, part in {**field.electric, **field.magnetic}.items():
        for axis, staggered in enumerate(part.location.staggered):
            if not staggered:
                part = average(part, axis)
        out.append(part.data if name[0] == "E" else permeability * part.data)
    return Field(jnp.stack(out), field.grid, part.location)


def _remember(field: ElectromagneticField, memory: dict) -> ElectromagneticField:
    if not memory:
        return field
    return replace_fields(field, {"memory": {**field.memory, **memory}})
