"""Small problems with known solutions, and the shortest possible loop."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.special import ellipj

from physkit.core import Clock, StepCount, get_component, param, static
from physkit.particles import ParticleIncrement, Particles
from physkit.particles.forces import AbstractForce


def evolve(integrator, state, dt, steps, *, t0=0.0, key=None, first=0, aux=None):
    """(state, aux) after `steps` steps, a number that may be traced when no derivative is asked."""
    plan = integrator.prepare(state, dt)
    clock = lambda n: Clock.at(StepCount.of(first).plus(n), jnp.asarray(t0, dt.dtype), dt, key)
    if aux is None:
        aux = integrator.init(plan, clock(0), state)
    step = lambda n, carry: integrator.step(plan, clock(n), *carry)
    if isinstance(steps, int):
        body = lambda carry, n: (step(n, carry), None)
        return jax.lax.scan(body, (state, aux), jnp.arange(steps, dtype=jnp.int32))[0]
    return jax.lax.fori_loop(0, steps, step, (state, aux))


evolve_compiled = jax.jit(evolve, static_argnames=("steps", "first"))


def final_state(integrator, state, dt, steps, **options):
    """The state after `steps` steps, compiled."""
    return evolve_compiled(integrator, state, jnp.asarray(dt), steps, **options)[0]


def convergence_order(integrator, problem, *, points=3, key=None) -> float:
    """The fitted order: log error over log dt, at the finest steps that rounding leaves alone."""

    @jax.jit
    def answer(steps):
        dt = problem.time / steps.astype(float)
        return problem.read(evolve(integrator, problem.state, dt, steps, key=key)[0])

    step_counts, errors = [], []
    for n in sorted({round(8 * 2 ** (k / 3)) for k in range(31)}):
        error = float(np.max(np.abs(np.asarray(answer(jnp.asarray(n))) - problem.exact)))
        # Finer steps would only measure rounding, which grows like a random walk.
        if error < problem.rounding * n**0.5:
            break
        step_counts.append(n)
        errors.append(error)
    assert len(errors) >= points, errors
    dt = 1 / np.array(step_counts[-points:])
    return float(np.polyfit(np.log(dt), np.log(errors[-points:]), 1)[0])


class Problem(NamedTuple):
    """A state, the time to run, how to read the answer off a state, and the answer."""

    state: Any
    time: float
    read: Callable[[Any], Any]
    exact: np.ndarray
    rounding: float = 2e-13  # errors below this times √steps say nothing


# --- forces ---------------------------------------------------------------------------------------


class Spring(AbstractForce):
    """½ k x²(1 + drive·sin t), with the total force from outside."""

    stiffness: Any = param(1.0)
    drive: Any = param(0.0)
    component: str | None = static(default=None)
    conserves_momentum = False

    def energy(self, clock, state, cache=None):
        x = self.particles(state).position
        return 0.5 * self.stiffness * (1 + self.drive * jnp.sin(clock.t)) * jnp.sum(x * x)


class Sine(AbstractForce):
    """1 − cos x: a pendulum."""

    component: str | None = static(default=None)
    conserves_momentum = False

    def energy(self, clock, state, cache=None):
        return jnp.sum(1 - jnp.cos(self.particles(state).position))


class Central(AbstractForce):
    """A unit mass at the origin: −m/r."""

    component: str | None = static(default=None)
    conserves_momentum = False

    def energy(self, clock, state, cache=None):
        p = self.particles(state)
        return -jnp.sum(p.mass / jnp.sqrt(jnp.sum(p.position**2, axis=1)))


class Bond(AbstractForce):
    """½(1 + ½ sin t)·k·Δ² + ¼Δ⁴ between the particles of `component` and those of `to`, one by one."""

    stiffness: Any = param(1.0)
    component: str | None = static(default=None)
    to: str | None = static(default=None)
    conserves_momentum = True

    def energy(self, clock, state, cache=None):
        gap = get_component(state, self.component).position - get_component(state, self.to).position
        k = self.stiffness * (1 + 0.5 * jnp.sin(clock.t))
        return jnp.sum(0.5 * k * gap**2 + 0.25 * gap**4)


class Pair(AbstractForce):
    """½ k Σ (|xᵢ − xᵢ₊₁| − 1)² along a chain within one component: momentum is conserved."""

    stiffness: Any = param(1.0)
    component: str | None = static(default=None)
    conserves_momentum = True

    def energy(self, clock, state, cache=None):
        x = self.particles(state).position
        r = jnp.sqrt(jnp.sum((x[1:] - x[:-1]) ** 2, axis=1))
        return 0.5 * self.stiffness * jnp.sum((r - 1) ** 2)


class NoForce(AbstractForce):
    """Free flight: an ideal gas."""

    component: str | None = static(default=None)
    conserves_momentum = True

    def energy(self, clock, state, cache=None):
        return jnp.zeros((), self.particles(state).position.dtype)

    def force(self, clock, state):
        return jnp.zeros_like(self.particles(state).position)

    def virial(self, clock, state, cache=None):
        p = self.particles(state)
        return jnp.zeros((p.dimension,) * 2, p.position.dtype)


# --- problems of particles ------------------------------------------------------------------------


def read_phase_space(*names: str | None):
    """Reads positions and velocities of the components `names`."""

    def read(state):
        parts = [get_component(state, name) for name in names]
        return jnp.concatenate([x.ravel() for p in parts for x in (p.position, p.velocity)])

    return read


def solve_accurately(rate, start, time):
    solution = solve_ivp(rate, (0, time), start, method="DOP853", rtol=3e-14, atol=1e-15)
    return solution.y[:, -1]


def oscillator(damping: float = 0.0) -> Problem:
    """Linear: x'' = −x − damping·v, for about five periods."""
    matrix = np.array([[0.0, 1.0], [-1.0, -damping]])
    exact = expm(30.0 * matrix) @ np.array([1.0, 0.3])
    return Problem(Particles([[1.0]], [[0.3]], mass=2.0), 30.0, read_phase_space(None), exact)


def particle_pendulum() -> Problem:
    """Nonlinear: x'' = −sin x, a pendulum let go at 69°, for about nine periods."""
    time, modulus = 60.0, np.sin(0.6)
    sn, cn, dn, _ = ellipj(time, modulus**2)
    sine = modulus * cn / dn  # sin(x/2), in Jacobi's elliptic functions
    speed = -2 * modulus * (1 - modulus**2) * sn / dn**2 / np.sqrt(1 - sine**2)
    exact = np.array([2 * np.arcsin(sine), speed])
    return Problem(Particles([[1.2]], [[0.0]]), time, read_phase_space(None), exact, 1.5e-13)


def coupled_particles() -> Problem:
    """Two components, each pulled by the other through a bond that changes with time."""
    mass = (1.0, 2.0)
    state = {
        "light": Particles([[0.0]], [[0.5]], mass=mass[0]),
        "heavy": Particles([[1.0]], [[-0.2]], mass=mass[1]),
    }

    def rate(t, y):
        gap = y[0] - y[2]
        pull = -2 * (1 + 0.5 * np.sin(t)) * gap - gap**3
        return [y[1], pull / mass[0], y[3], -pull / mass[1]]

    exact = solve_accurately(rate, [0.0, 0.5, 1.0, -0.2], 3.0)
    return Problem(state, 3.0, read_phase_space("light", "heavy"), exact, 1.7e-14)


def orbit() -> Particles:
    """A body around a unit mass at the origin, eccentricity ½, at its far end; its period is 2π."""
    return Particles([[1.5, 0.0]], [[0.0, np.sqrt(1 / 3)]])


def bonds() -> tuple[AbstractForce, AbstractForce]:
    """The forces of `coupled`."""
    return Bond(2.0, component="light", to="heavy"), Bond(2.0, component="heavy", to="light")


# --- problems of rates ----------------------------------------------------------------------------

_MATRIX = np.array([[-0.2, 1.0], [-1.5, -0.1]])


def linear_rate(t, y):
    return jnp.asarray(_MATRIX, y.dtype) @ y


def linear() -> Problem:
    """A damped rotation of a bare array."""
    start = np.array([1.0, 0.5])
    return Problem(jnp.asarray(start), 3.0, lambda y: y, expm(3.0 * _MATRIX) @ start)


def pendulum_rate(t, y):
    return {"speed": -jnp.sin(y["angle"]) + 0.5 * jnp.cos(2 * t), "angle": y["speed"]}


def pendulum() -> Problem:
    """A driven pendulum, as a dict of bare numbers."""
    rate = lambda t, y: [y[1], -np.sin(y[0]) + 0.5 * np.cos(2 * t)]
    state = {"angle": jnp.asarray(1.0), "speed": jnp.asarray(0.2)}
    read = lambda y: jnp.stack([y["angle"], y["speed"]])
    return Problem(state, 10.0, read, solve_accurately(rate, [1.0, 0.2], 10.0))


def drag_rate(t, state):
    """Two-way drag between a ball and a stream of half its mass: partial rates by component."""
    slip = state["ball"].velocity - state["stream"]
    return {"ball": ParticleIncrement(velocity=-0.5 * slip), "stream": slip}


def ball_in_stream() -> Problem:
    """A ball on a spring, dragged along by a stream that it slows down."""

    def rate(t, y):
        x, v, u = y
        return [v, -x - 0.5 * (v - u), v - u]

    state = {"ball": Particles([[1.0]], [[0.0]]), "stream": jnp.asarray([[0.7]])}
    read = lambda s: jnp.stack([s["ball"].position, s["ball"].velocity, s["stream"]]).ravel()
    return Problem(state, 3.0, read, solve_accurately(rate, [1.0, 0.0, 0.7], 3.0))
