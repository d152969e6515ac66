"""Forces between particles through a mesh."""

import dataclasses
import functools
import math
import operator
from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Cache,
    Clock,
    NotReversible,
    ParameterError,
    PyTree,
    ShapeError,
    State,
    get_component,
    scale_array,
    static,
    warn,
)
from physkit.fields import Field, Spectrum, stack
from physkit.fields.operators import AbstractScheme, Central
from physkit.geometry import Box, Grid
from physkit.particles import Particles
from physkit.particles.forces import AbstractForce

from ._kernels import CIC, AbstractKernel
from ._mesh_interactions import AbstractMeshInteraction, Electrostatics
from ._transfer import Points, deposit_at, interpolate_at, require_box_of_grid


class ParticleMesh(AbstractForce):
    """Particles that act on one another through a mesh: plasmas (PIC) and self-gravity (PM).

        ρ = deposit(q, x),   φ_k = G(k²) ρ_k,   E = −∇φ,   F = q E(x)

    A force like any other: `VelocityVerlet(ParticleMesh(grid))` is electrostatic particle-in-cell.
    The cost is of order n + N log N for n particles and N cells. The mean of ρ is left out, as if a
    uniform background neutralized the box.

    **Arguments:**

    - `grid`: periodic along every axis, and as large as the particles' box.
    - `interaction`: `Electrostatics(permittivity)`, if left out, or `Gravity(constant)`.
    - `kernel`: the particles' shape: `CIC()`, `TSC()`, `PCS()`, `Nearest()`.
    - `scheme`: derivatives of φ: `Central(4)` if left out, `Central(2)` as classical codes have it, or
      `Spectral()` for smooth distributions (fields of single particles ring).
    - `conserves`: `"momentum"`: E is computed on the mesh, and the forces add up to 0 to rounding;
      energy is conserved as far as the mesh resolves. `"energy"`: forces are minus the gradient of
      `energy`, which small steps conserve to any precision; momentum is not, and particles feel their
      own images on the mesh. The kernel should then be `TSC()` or `PCS()`, with continuous gradients.
    - `deconvolved`: divide the kernel's window out of ρ and E: right for smooth distributions, which many
      particles make up, up to the shortest waves. Between single particles it is far worse (see Notes).
    - `interlaced`: average the forces with those of a second mesh, half a cell away. Aliases of odd order
      cancel: forces depend 4 (`CIC()`) to 10 times (`TSC()`) less on where the mesh lies. Twice the cost.
    - `exact`: deposit sums that do not depend on the order of particles.
    - `component`: one component's name, or a tuple of names: all of them deposit on the same mesh, and the
      field acts on all. None where the state is one component.

    **Errors:** `ParameterError` for a box with walls, or one that is not the grid's; particles without
    charge. `ShapeError` for another dimension.

    **Good values:** cells of at most three Debye lengths in a plasma; 10 to 100 particles a cell (a
    quiet start needs fewer).

    **Notes:** forces between particles closer than some two cells are too weak. Against Ewald's sum, in three
    dimensions and for pairs four cells apart and more, the force is off by 1.5 % with `CIC()`, 0.2 % with
    `TSC()` and `PCS()`, and by half of that if `interlaced`; if `deconvolved` by 15 to 80 %; and by several
    times itself for `conserves="energy"`, whose particles feel their own images. The last two are for many
    particles a cell, and warn with few. Forces depend slightly on where the mesh lies, so the battery's test
    of translations does not hold, and `degrees_of_freedom` counts no conserved momentum.

    **Reference:** Hockney & Eastwood, Computer Simulation Using Particles (1988), chapters 5 to 8;
    Birdsall & Langdon, Plasma Physics via Computer Simulation (1991), chapter 10, for what is conserved; for
    `interlaced` Chen, Langdon & Birdsall, J. Comput. Phys. 14, 200 (1974).
    """

    conserves_momentum: ClassVar[bool] = False
    ignores_velocities: ClassVar[bool] = True

    grid: Grid
    interaction: AbstractMeshInteraction
    kernel: AbstractKernel = CIC()
    scheme: AbstractScheme = Central(4)
    conserves: str = static(default="momentum")
    deconvolved: bool = static(default=False)
    interlaced: bool = static(default=False)
    exact: bool = static(default=False)
    component: str | tuple[str, ...] | None = static(default=None)

    def __init__(
        self,
        grid: Grid,
        interaction: AbstractMeshInteraction | None = None,
        kernel: AbstractKernel | None = None,
        *,
        scheme: AbstractScheme | None = None,
        conserves: str = "momentum",
        deconvolved: bool = False,
        interlaced: bool = False,
        exact: bool = False,
        component: str | tuple[str, ...] | list[str] | None = None,
    ):
        grid.require_periodic("Poisson's equation by Fourier modes and so the particle mesh")
        if conserves not in ("momentum", "energy"):
            raise ParameterError(f'conserves is "momentum" or "energy"; got {conserves!r}')
        self.grid, self.interaction = grid, interaction or Electrostatics()
        self.kernel, self.scheme = kernel or CIC(), scheme or Central(4)
        self.conserves, self.exact = conserves, exact
        self.deconvolved, self.interlaced = deconvolved, interlaced
        self.component = tuple(component) if isinstance(component, list) else component

    @property
    def components(self) -> tuple[str | None, ...]:
        return self.component if isinstance(self.component, tuple) else (self.component,)

    @property
    def needs_halo(self) -> bool:
        return False  # particles act through the mesh, which has ghosts of its own

    def for_start(self, state: State, least: int = 0) -> "ParticleMesh":
        del least
        for name in self.components:
            self._check(get_component(state, name))
        return self

    def check_state(self, state: State) -> None:
        for name in self.components:
            particles = get_component(state, name)
            require_box_of_grid(particles.space, self.grid, type(self).__name__)

    def init(self, state: State) -> None:
        parts = [get_component(state, name) for name in self.components]
        for particles in parts:
            self._check(particles)
            self._points(particles, 0.0)  # refuses another box than the mesh's
        count, cells = sum(p.num_particles for p in parts), math.prod(self.grid.shape)
        for_many = {
            "deconvolved=True": self.deconvolved,
            'conserves="energy"': not self._is_momentum,
        }
        given = ", ".join(setting for setting, is_given in for_many.items() if is_given)
        if given and count < cells:
            warn(
                f"ParticleMesh({given}) is for smooth distributions of many particles: with {count} on {cells} "
                "cells the force between single particles is wrong by tens of percent and more. Leave it out, "
                "and take kernel=TSC() or PCS()"
            )

    def require_reversible(self, state: State) -> None:
        """**Errors:** `NotReversible` over devices, where the order of addition depends on the sharding."""
        if any(get_component(state, name).is_distributed for name in self.components):
            raise NotReversible(
                "ParticleMesh adds what each device deposits, and in the backward pass another device may "
                "hold a particle: over devices use adjoint=NestedCheckpoint() or Binomial(n)"
            )

    # --- fields on the mesh (if interlaced, on the first of the two) ----------------------------

    def density(self, state: State) -> Field:
        """ρ of all components, charge or mass per volume."""
        return self._deposit(state, 0.0)

    def potential(self, state: State) -> Field:
        """φ, with mean 0."""
        return self._potential(self._source(state)).field()

    def field(self, state: State) -> Field:
        """E = −∇φ: force per charge or mass, a vector field."""
        return self._field(self._potential(self._source(state)))

    # --- as a force -----------------------------------------------------------------------------

    def force(
        self, clock: Clock, state: State
    ) -> Float[Array, "n d"] | dict[str, Float[Array, "n d"]]:
        del clock
        parts = {name: get_component(state, name) for name in self.components}
        for particles in parts.values():
            self._check(particles)

        def forces(shift: float) -> dict[str | None, Array]:
            potential = self._potential(self._source(state, shift))
            return {name: self._component_force(potential, p, shift) for name, p in parts.items()}

        total = self._mean(forces)
        return total if isinstance(self.component, tuple) else total[self.component]

    def energy(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, ""]:
        """½ ∫ ρ φ dV of all components together, including each particle's energy in its own potential."""
        del clock, cache

        def of_mesh(shift: float) -> Array:
            source = self._source(state, shift)
            return (source.field() * self._potential(source).field()).integral() / 2

        return self._mean(of_mesh)

    def virial(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, "d d"]:
        """−∂U/∂ε for a strain ε of particles and mesh alike."""
        k2, is_wave = self._k2(), self._is_wave()

        def response_of_log(log_k2: Array) -> Array:
            return self._response(jnp.exp(log_k2))

        positive = jnp.where(is_wave, k2, 1)
        # A strain changes k² by −2 Σ ε_ab k_a k_b, and so G by dG/d(ln k²) · (−2 Σ ε_ab k_a k_b / k²).
        _, slope = jax.jvp(response_of_log, (jnp.log(positive),), (jnp.ones_like(k2),))
        slope, size = jnp.where(is_wave, slope, 0), jnp.sqrt(positive)
        # Directions first: in SI units G/k² leaves the range of float32, where G does not.
        waves, axes = [k / size for k in self._waves()], range(self.grid.dimension)

        def of_mesh(shift: float) -> Array:
            source = self._source(state, shift)
            density = source.field()

            def stress(a: int, b: int) -> Array:
                return (density * source.multiply(slope * waves[a] * waves[b]).field()).integral()

            return jnp.stack([jnp.stack([stress(a, b) for b in axes]) for a in axes])

        total = self._mean(of_mesh)
        return total + self.energy(clock, state, cache) * jnp.eye(len(axes), dtype=total.dtype)

    # --- implementation -------------------------------------------------------------------------

    @property
    def _is_momentum(self) -> bool:
        return self.conserves == "momentum"

    def _points(self, particles: Particles, shift: float) -> Points:
        """Where the particles are on a mesh moved by `shift` cells."""
        at = Points.of(particles, self.grid, "ParticleMesh")
        if not shift:
            return at
        moved = at.position + shift * self.grid.spacing.astype(at.position.dtype)[None]
        return Points(moved, at.mask, at.margin + shift / min(self.grid.local_shape))

    def _deposit(self, state: State, shift: float) -> Field:
        parts = []
        for name in self.components:
            particles = get_component(state, name)
            self._check(particles)
            at, source = self._points(particles, shift), self.interaction.charge(particles)
            parts.append(deposit_at(source, at, self.grid, self.grid.cell, self.kernel, self.exact))
        return sum(parts[1:], parts[0])

    def _source(self, state: State, shift: float = 0.0) -> Spectrum:
        """ρ by modes, on the mesh moved by `shift` cells."""
        return self._deposit(state, shift).spectrum()

    def _mean(self, of_mesh: Callable[[float], PyTree]) -> PyTree:
        """The mean over both meshes. Each acts on what it holds itself: a mean of their fields would ring."""
        parts = [of_mesh(shift) for shift in ((0.0, 0.5) if self.interlaced else (0.0,))]
        if len(parts) == 1:
            return parts[0]
        return jax.tree.map(lambda a, b: (a + b) / 2, *parts)

    def _phases(self, axis: int) -> Float[Array, "..."]:
        turns = self.grid.map_modes(axis, lambda n: 2 * np.pi * n / self.grid.shape[axis])
        return jnp.asarray(turns, self.grid.space.lengths.dtype)

    def _potential(self, source: Spectrum) -> Spectrum:
        k2, waves = self._k2(), self._is_wave()
        return source.multiply(jnp.where(waves, self._response(jnp.where(waves, k2, 1)), 0))

    def _is_wave(self) -> Array | np.ndarray:
        """True for all modes but the mean."""
        # By mode numbers: k² of finite differences is 0 for the mean only up to rounding.
        first, *rest = (n != 0 for n in self.grid.modes())
        return functools.reduce(operator.or_, rest, first)

    def _k2(self) -> Float[Array, "..."]:
        first, *rest = (-self.scheme.symbol(self.grid, k, 2) for k in range(self.grid.dimension))
        return sum(rest, first)

    def _response(self, k2: Float[Array, "..."]) -> Float[Array, "..."]:
        response = self.interaction.green_function(k2)
        if self.deconvolved:
            for k in range(self.grid.dimension):
                response = response / self.kernel.window(self._phases(k)) ** 2
        return response

    def _waves(self) -> list[Float[Array, "..."]]:
        """k per axis of the scheme's second derivative, with the sign of the mode."""
        out = []
        for k in range(self.grid.dimension):
            square = -self.scheme.symbol(self.grid, k, 2)
            is_wave = square > 0
            # Masked inside as well: the derivative of a root at 0 is infinite.
            size = jnp.where(is_wave, jnp.sqrt(jnp.where(is_wave, square, 1)), 0)
            out.append(size * jnp.asarray(self.grid.map_modes(k, np.sign), size.dtype))
        return out

    def _field(self, potential: Spectrum) -> Field:
        axes = range(self.grid.dimension)

        def minus_derivative(axis: int) -> Field:
            symbol = self.scheme.symbol(self.grid, axis, 1)
            return potential.multiply(scale_array(symbol, -1)).field()

        return stack([minus_derivative(k) for k in axes])

    def _component_force(
        self, potential: Spectrum, particles: Particles, shift: float
    ) -> Float[Array, "n d"]:
        # Optimization barrier: the compiler would keep the weights of the deposit in memory to use them again
        # here, but writing and reading them costs more than computing them.
        points = self._points(particles, shift)
        x = jax.lax.optimization_barrier(points.position)
        # Not masked: rows without a particle may feel a force, but are never moved by it.
        source = self.interaction.charge(particles)
        if self._is_momentum:
            at = dataclasses.replace(points, position=x)
            return source[:, None] * interpolate_at(self._field(potential), at, self.kernel)
        field = potential.field()

        def potential_energy(x: Float[Array, "n d"]) -> Float[Array, ""]:
            at = dataclasses.replace(points, position=x)
            return jnp.sum(source * interpolate_at(field, at, self.kernel))

        return -jax.grad(potential_energy)(x)

    def _check(self, particles: Particles) -> None:
        space = particles.space
        if particles.dimension != self.grid.dimension:
            raise ShapeError(
                f"particles in {particles.dimension} dimensions on a mesh of {self.grid.dimension}"
            )
        if not isinstance(space, Box) or space.periodic != self.grid.periodic:
            raise ParameterError(
                "a particle mesh is periodic along every axis, and so must be the particles' space: give "
                f"them space=Box(…), the grid's; got {space!r}"
            )
