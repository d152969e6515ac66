"""Every integrator reaches its order on a linear, a nonlinear and a coupled problem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Function
from physkit.integrators import (
    BAOAB,
    PEFRL,
    RK4,
    RK38,
    SSPRK2,
    SSPRK3,
    BlanesMoan,
    DormandPrince5,
    EquationsOfMotion,
    Euler,
    Heun,
    KahanLi,
    Leapfrog,
    Lie,
    Midpoint,
    NoseHooverChain,
    Ralston,
    RungeKutta,
    Strang,
    Subcycle,
    Suzuki,
    Tableau,
    ThermostatChain,
    VelocityVerlet,
    Yoshida,
)
from physkit.particles import ParticleIncrement, Particles

from .problems import (
    Problem,
    Sine,
    Spring,
    ball_in_stream,
    bonds,
    convergence_order,
    coupled_particles,
    drag_rate,
    linear,
    linear_rate,
    oscillator,
    particle_pendulum,
    pendulum,
    pendulum_rate,
    read_phase_space,
    solve_accurately,
)

SPLITTINGS = {
    "VelocityVerlet": (VelocityVerlet, 2),
    "Leapfrog": (Leapfrog, 2),
    "Yoshida4": (lambda *f: Yoshida(_sum(f), order=4), 4),
    "Yoshida6": (lambda *f: Yoshida(_sum(f), order=6), 6),
    "Yoshida8": (lambda *f: Yoshida(_sum(f), order=8), 8),
    "Suzuki4": (lambda *f: Suzuki(_sum(f), order=4), 4),
    "Suzuki6": (lambda *f: Suzuki(_sum(f), order=6), 6),
    "Suzuki8": (lambda *f: Suzuki(_sum(f), order=8), 8),
    "KahanLi6": (lambda *f: KahanLi(_sum(f), order=6), 6),
    "KahanLi8": (lambda *f: KahanLi(_sum(f), order=8), 8),
    "BlanesMoan4": (lambda *f: BlanesMoan(_sum(f), order=4), 4),
    "BlanesMoan6": (lambda *f: BlanesMoan(_sum(f), order=6), 6),
    "PEFRL": (lambda *f: PEFRL(_sum(f)), 4),
    "RK4(EquationsOfMotion)": (lambda *f: RK4(EquationsOfMotion(_sum(f))), 4),
    "Subcycle(VelocityVerlet)": (lambda *f: Subcycle(VelocityVerlet(_sum(f)), 3), 2),
}

KUTTA3 = Tableau(((), (1 / 2,), (-1.0, 2.0)), (1 / 6, 2 / 3, 1 / 6), 3, "Kutta 1901")

RUNGE_KUTTA = {
    "Euler": (Euler, 1),
    "Midpoint": (Midpoint, 2),
    "Heun": (Heun, 2),
    "Ralston": (Ralston, 2),
    "SSPRK2": (SSPRK2, 2),
    "SSPRK3": (SSPRK3, 3),
    "RK4": (RK4, 4),
    "RK38": (RK38, 4),
    "DormandPrince5": (DormandPrince5, 5),
    "RungeKutta(Kutta3)": (lambda *f: RungeKutta(KUTTA3, *f), 3),
    "Subcycle(SSPRK3)": (lambda *f: Subcycle(SSPRK3(*f), 2), 3),
}


def _sum(forces):
    return forces[0] if len(forces) == 1 else forces[0] + forces[1]


PARTICLE_PROBLEMS = {
    "linear": (oscillator, lambda: (Spring(2.0),)),
    "nonlinear": (particle_pendulum, lambda: (Sine(),)),
    "coupled": (coupled_particles, bonds),
}
RATE_PROBLEMS = {
    "linear": (linear, lambda: (linear_rate,)),
    "nonlinear": (pendulum, lambda: (pendulum_rate,)),
    "coupled": (
        ball_in_stream,
        lambda: (EquationsOfMotion(Spring(component="ball")), Function(drag_rate)),
    ),
}


@pytest.mark.parametrize("problem", PARTICLE_PROBLEMS)
@pytest.mark.parametrize("name", SPLITTINGS)
def test_order_with_forces(name, problem):
    method, order = SPLITTINGS[name]
    make, forces = PARTICLE_PROBLEMS[problem]
    forces = forces()
    integrator = method(_sum(forces)) if name in ("VelocityVerlet", "Leapfrog") else method(*forces)
    assert convergence_order(integrator, make()) == pytest.approx(order, abs=0.2)


@pytest.mark.parametrize("problem", RATE_PROBLEMS)
@pytest.mark.parametrize("name", RUNGE_KUTTA)
def test_order_with_rates(name, problem):
    method, order = RUNGE_KUTTA[name]
    make, tendencies = RATE_PROBLEMS[problem]
    assert convergence_order(method(*tendencies()), make()) == pytest.approx(order, abs=0.2)


def _friction(component=None, rate=0.3):
    motion = lambda p: ParticleIncrement(velocity=-rate * p.velocity)
    return RK4(lambda t, s: motion(s) if component is None else {component: motion(s[component])})


@pytest.mark.parametrize(
    ("integrator", "order"),
    [
        (Lie(VelocityVerlet(Spring(2.0)), _friction()), 1),
        (Strang(VelocityVerlet(Spring(2.0)), _friction()), 2),
        (Strang(_friction(), VelocityVerlet(Spring(2.0))), 2),
        (Strang(VelocityVerlet(Spring(2.0)), _friction(rate=0.1), _friction(rate=0.2)), 2),
        (Strang(_friction(), Subcycle(Leapfrog(Spring(2.0)), 2)), 2),
        (BAOAB(Spring(2.0), temperature=0.0, friction=0.3), 2),
    ],
    ids=["Lie", "Strang(force first)", "Strang(force last)", "Strang(three)", "nested", "BAOAB"],
)
def test_order_of_compositions(integrator, order):
    """A damped oscillator, its parts composed; without noise BAOAB is one of them."""
    key = jax.random.key(0)
    assert convergence_order(integrator, oscillator(damping=0.3), key=key) == pytest.approx(
        order, abs=0.2
    )


@pytest.mark.parametrize(
    "compose",
    [
        lambda spring, drag: Strang(VelocityVerlet(spring), drag),
        lambda spring, drag: Strang(drag, VelocityVerlet(spring)),
    ],
    ids=["force first", "force last"],
)
def test_strang_couples_components_at_order_two(compose):
    integrator = compose(Spring(component="ball"), RK4(drag_rate))
    assert convergence_order(integrator, ball_in_stream()) == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_nose_hoover_chain_solves_its_equations_at_order_two(length):
    mass, temperature, period = 1.5, 0.7, 2.0
    slow = temperature * (period / (2 * np.pi)) ** 2  # one degree of freedom: all Q are equal

    def rate(t, y):
        x, v, eta = y[0], y[1], y[2 : 2 + length]
        zeta = y[2 + length :]
        above = np.append(zeta[1:], 0.0)
        heat = np.append(mass * v * v, slow * zeta[:-1] ** 2) - temperature
        dv = -np.sin(x) / mass - v * zeta[0]
        return np.concatenate([[v, dv], zeta + 0 * eta, heat / slow - zeta * above])

    start = np.concatenate([[1.0, 0.8], np.zeros(2 * length)])
    read = lambda s: jnp.concatenate(
        [read_phase_space("bead")(s), s["thermostat"].position, s["thermostat"].velocity]
    )
    state = {
        "bead": Particles([[1.0]], [[0.8]], mass=mass),
        "thermostat": ThermostatChain.at_rest(length),
    }
    problem = Problem(state, 3.0, read, solve_accurately(rate, start, 3.0))
    integrator = NoseHooverChain(Sine(component="bead"), temperature, period)
    assert convergence_order(integrator, problem) == pytest.approx(2, abs=0.2)
