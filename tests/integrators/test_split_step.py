"""Exact steps, their compositions, the split-step method, imaginary time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import DeclarationError, ParameterError, ShapeError
from physkit.fields import Field
from physkit.fields.equations import (
    Advection,
    Diffusion,
    FisherKPP,
    GrayScott,
    Schroedinger,
    Wave,
)
from physkit.fields.operators import Central
from physkit.geometry import Box, Dirichlet, Grid
from physkit.integrators import (
    RK4,
    Composition,
    Euler,
    ExactLinear,
    ExactWave,
    PotentialPropagator,
    SplitStep,
    Strang,
    ground_state,
)
from physkit.testing import check_gradient, check_integrator

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_battery[exact]",
    "test_split_step_equals_runge_kutta",
    "test_bad_parts_are_errors",
)

GRID = Grid([8.0], (16,))


def hump_and_phase(x):
    return jnp.exp(-((x - 3.5) ** 2)) * jnp.cos(x), jnp.exp(-((x - 3.5) ** 2)) * jnp.sin(x)


def packet():
    return Field.from_function(GRID, lambda x: jax.lax.complex(*hump_and_phase(x)))


def hump():
    return Field.from_function(GRID, lambda x: jnp.exp(-((x - 3.5) ** 2)))


def driven_trap(t, x):
    return 0.3 * (x - 4) ** 2 + 0.5 * jnp.cos(2 * t) * x


def string():
    boundary = Dirichlet(0.0)
    grid = Grid(Box([1.0], (False,)), (8,))
    pluck = Field.from_function(grid, lambda x: jnp.sin(np.pi * x), boundary=boundary)
    return {"displacement": pluck, "velocity": (0.3 * pluck**2 - 0.1).with_boundary(boundary)}


class SineForce(pk.equations.AbstractSecondOrder):
    """∂²u/∂t² = −sin u."""

    displacement: str = pk.static(default="displacement")
    velocity: str = pk.static(default="velocity")

    def acceleration(self, clock, field):
        return -field.map(jnp.sin)


class SineGordon(pk.equations.AbstractSecondOrder):
    """∂²u/∂t² = c²∇²u − sin u."""

    displacement: str = pk.static(default="displacement")
    velocity: str = pk.static(default="velocity")

    def acceleration(self, clock, field):
        return pk.operators.laplacian(field, pk.schemes.Spectral()) * 1.44 - field.map(jnp.sin)


def ring():
    return {"displacement": hump(), "velocity": 0.3 * hump() ** 2 + 0.1}


def verlet():
    wave = Wave(1.1, scheme=Central())
    return Strang(Euler(wave.kick), Euler(wave.drift))


CASES = {
    "exact": (lambda: ExactLinear(Diffusion(0.3), Advection(0.5)), hump, 0.1, {"symmetric": True}),
    "phase": (
        lambda: PotentialPropagator(Schroedinger(driven_trap)),
        packet,
        0.1,
        {"symmetric": True, "ignore": ["mass"]},
    ),
    "split2": (
        lambda: SplitStep(Schroedinger(driven_trap)),
        packet,
        0.02,
        {"order": 2, "symmetric": True},
    ),
    "split4": (
        lambda: SplitStep(Schroedinger(driven_trap, 1.1, 0.9, 0.4), 4),
        packet,
        0.05,
        {"order": 4, "symmetric": True},
    ),
    "exact wave": (lambda: ExactWave(Wave(1.2)), ring, 0.1, {"symmetric": True}),
    "sine-gordon": (
        lambda: Strang(Euler(SineForce().kick), ExactWave(Wave(1.2))),
        ring,
        0.05,
        {"order": 2, "symmetric": True, "reference": RK4(SineGordon())},
    ),
    "composition": (
        lambda: Composition(verlet(), 4), string, 0.02, {"order": 4, "symmetric": True}
    ),
    "wave": (verlet, string, 0.02, {"order": 2, "symmetric": True}),
    "reaction": (
        lambda: Strang(RK4(FisherKPP(1.5)), ExactLinear(Diffusion(0.3))),
        # Nowhere near 0, where the rate has a kink that differences would step over.
        lambda: hump().map(lambda u: 0.2 + u),
        0.1,
        {"order": 2},
    ),
}  # fmt: skip


SLOW = ("split4", "composition")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CASES]
)
def test_battery(name):
    integrator, state, dt, options = CASES[name]
    check_integrator(integrator(), state(), dt, **options)


def test_exact_steps_have_no_error():
    wave = Field.from_function(GRID, lambda x: jnp.sin(np.pi / 2 * x))
    equations = ExactLinear(Diffusion(0.3), Advection(0.5))
    end = pk.simulate(pk.Simulation(equations, dt=1.3), wave, 2).state
    k, t = np.pi / 2, 2.6
    (x,) = wave.coordinates
    expected = np.exp(-0.3 * k**2 * t) * np.sin(k * (np.asarray(x) - 0.5 * t))
    np.testing.assert_allclose(end.data, expected, atol=1e-14)


def test_exact_waves_equal_d_alemberts_solution():
    shape = lambda x: jnp.exp(jnp.sin(np.pi / 4 * x))
    start = {
        "displacement": Field.from_function(GRID, shape),
        "velocity": Field(0.25, GRID),
    }
    end = pk.simulate(pk.Simulation(ExactWave(Wave(1.3)), dt=2.0), start, 3).state
    (x,) = GRID.coordinates()
    expected = 0.5 * (shape(x - 7.8) + shape(x + 7.8)) + 0.25 * 6.0
    np.testing.assert_allclose(end["displacement"].data, expected, atol=1e-5)


@pytest.mark.parametrize("order", [2, 4, 6])
def test_the_norm_is_kept_for_any_step(order):
    sim = pk.Simulation(SplitStep(Schroedinger(driven_trap, 1.0, 1.0, 0.5), order), dt=0.9)
    start = packet()
    end = pk.simulate(sim, start, 50).state
    np.testing.assert_allclose(end.norm(), start.norm(), rtol=1e-12)
    assert float(jnp.max(jnp.abs(end.data - start.data))) > 0.1


def test_split_step_equals_runge_kutta():
    equation = Schroedinger(driven_trap, 1.1, 0.9, 0.4)
    split = pk.simulate(pk.Simulation(SplitStep(equation, 4), dt=0.01), packet(), 50).state
    explicit = pk.simulate(pk.Simulation(RK4(equation), dt=0.002), packet(), 250).state
    np.testing.assert_allclose(split.data, explicit.data, atol=1e-6)


def test_ground_states_and_their_derivatives():
    grid = Grid([14.0], (48,))
    guess = Field.from_function(grid, lambda x: jnp.exp(-((x - 6.5) ** 2)), dtype=complex)
    (x,) = grid.coordinates()

    def energy(mass, stiffness):
        equation = Schroedinger(0.5 * stiffness * (x - 7) ** 2, mass)
        return ground_state(equation, guess, 0.1, 100)[1]

    np.testing.assert_allclose(energy(1.3, 1.9), 0.5 * np.sqrt(1.9 / 1.3), atol=1e-8)
    slope = jax.grad(energy, argnums=(0, 1))(1.3, 1.9)
    expected = (-0.25 * np.sqrt(1.9 / 1.3**3), 0.25 / np.sqrt(1.9 * 1.3))
    np.testing.assert_allclose(slope, expected, atol=1e-7)


def test_a_condensate_meets_its_virial_theorem():
    """In one dimension 2⟨T⟩ − 2⟨V⟩ + ⟨½g n²⟩ = 0 for the ground state in a harmonic trap."""
    grid = Grid([16.0], (64,))
    guess = Field.from_function(grid, lambda x: jnp.exp(-((x - 8) ** 2) / 4), dtype=complex)
    equation = Schroedinger(lambda t, x: 0.5 * (x - 8) ** 2, interaction=3.0)
    state, energy = ground_state(equation, guess, 0.05, 400)
    np.testing.assert_allclose(state.norm() ** 2 * 16.0, 1.0, rtol=1e-12)
    parts = [
        Schroedinger(0.0).energy(state),
        Schroedinger(lambda t, x: 0.5 * (x - 8) ** 2, 1e30).energy(state),
        Schroedinger(0.0, 1e30, interaction=3.0).energy(state),
    ]
    np.testing.assert_allclose(sum(parts), energy, rtol=1e-12)
    np.testing.assert_allclose(2 * parts[0] - 2 * parts[1] + parts[2], 0.0, atol=1e-5)


def test_gradients_pass_through_many_steps():
    def mean_position(equation):
        end = pk.simulate(pk.Simulation(SplitStep(equation), dt=0.05), packet(), 20).state
        (x,) = end.coordinates
        return GRID.sum(x * (end.data.real**2 + end.data.imag**2))

    check_gradient(mean_position, Schroedinger(0.2 * jnp.arange(16.0), 1.1, 0.9, 0.4))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: ExactLinear(), DeclarationError, "one or more equations"),
        (lambda: ExactLinear(lambda t, u: u), DeclarationError, "function"),
        (lambda: ExactWave(Diffusion(1.0)), DeclarationError, "Diffusion"),
        (lambda: SplitStep(Diffusion(1.0)), DeclarationError, "Diffusion"),
        (lambda: SplitStep(Schroedinger(), 3), ParameterError, "orders"),
        (lambda: Composition(verlet(), 5), ParameterError, "orders"),
    ],
)
def test_bad_parts_are_errors(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_bad_states_are_errors():
    run = lambda integrator, state: pk.simulate(pk.Simulation(integrator, dt=0.1), state, 1)
    with pytest.raises(ParameterError, match="walls along x"):
        run(ExactLinear(Diffusion(1.0)), string()["displacement"])
    with pytest.raises(ParameterError, match="walls along x"):
        run(ExactWave(Wave(1.0)), string())
    with pytest.raises(ShapeError, match="one speed everywhere"):
        run(ExactWave(Wave(jnp.ones(16))), ring())
    with pytest.raises(DeclarationError, match="has no symbol"):
        run(ExactLinear(GrayScott(0.04, 0.06)), hump())
    with pytest.raises(ShapeError, match="one complex number per point"):
        run(SplitStep(Schroedinger()), hump())
    with pytest.raises(ParameterError, match="count from 1"):
        ground_state(Schroedinger(), packet(), 0.1, 0)
