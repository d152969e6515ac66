"""Events: bounces against closed forms, with their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import DeclarationError, StepSizeError
from physkit.integrators import RK4, Event, Events


def bounce(x0, g, e, steps=23, dt=0.1):
    """Height and speed of a ball that starts at rest; the reset is a change of sign with restitution."""
    fall = pk.Function(lambda t, x, g: jnp.stack([x[1], -g]), g)
    floor = Event(lambda t, x, e: x[0], lambda t, x, e: jnp.stack([0 * x[0], -e * x[1]]), e)
    sim = pk.Simulation(Events(RK4(fall), floor), dt=dt)
    return pk.simulate(sim, jnp.stack([x0, 0 * x0]), steps).state


def exact(x0, g, e, t=2.3):
    """The same by hand: falls to the floor at √(2 x₀/g), flies of 2 e^k v/g between bounces."""
    v = np.sqrt(2 * g * x0)
    at = v / g
    v = e * v
    while np.real(at + 2 * v / g) < t:
        at, v = at + 2 * v / g, e * v
    s = t - at
    return np.array([v * s - 0.5 * g * s**2, v - g * s])


@pytest.mark.parametrize("dt", [pytest.param(0.1, marks=pytest.mark.slow), 1.15])
def test_a_ball_and_its_derivatives(dt):
    """Three bounces; in long steps two in one. ∂x/∂x₀, ∂x/∂g, ∂x/∂e and a batch."""
    start = (1.3, 9.81, 0.8)
    steps = round(2.3 / dt)
    end = lambda *a: bounce(*a, steps=steps, dt=dt)
    # By complex steps, which round no difference.
    expected = [exact(*(np.array(start) + 1e-30j * row)).imag / 1e-30 for row in np.eye(3)]
    both = lambda *a: (end(*a),) * 2
    slope = jax.jacrev(both, (0, 1, 2), has_aux=True)
    if dt < 1:
        found, value = jax.jit(slope)(*start)
    else:
        # As a member of a batch: one program has both.
        heights = jnp.array([1.3, 0.4])
        batch = jax.jit(jax.vmap(slope, (0, None, None)))(heights, *start[1:])
        found, value = jax.tree.map(lambda x: x[0], batch)
        np.testing.assert_allclose(batch[1][1], exact(0.4, *start[1:]), atol=1e-12)
    np.testing.assert_allclose(value, exact(*start), atol=1e-12)
    np.testing.assert_allclose(np.array(found), expected, atol=1e-10)


def test_walls_and_a_particle_under_a_force_that_is_carried():
    """Velocity Verlet between two walls: the energy stays, the flight is a triangle wave."""
    left = Event(lambda t, p: p.position[0, 0], flip)
    right = Event(lambda t, p: 1 - p.position[0, 0], flip)
    verlet = pk.VelocityVerlet(pk.UniformAcceleration([0.0, -1.0]))
    atom = pk.Particles([[0.25, 0.0]], velocity=[[1.7, 0.5]])
    sim = pk.Simulation(Events(verlet, left, right), dt=0.9)
    end = pk.simulate(sim, atom, 5).state
    x = 0.25 + 1.7 * 4.5
    np.testing.assert_allclose(end.position[0, 0], abs((x + 1) % 2 - 1), atol=1e-12)
    np.testing.assert_allclose(end.position[0, 1], 0.5 * 4.5 - 0.5 * 4.5**2, atol=1e-12)


def flip(t, p):
    return p.replace(velocity=p.velocity * jnp.array([[-1.0, 1.0]]))


def test_zeno_is_reported():
    """A ball that comes to rest at t = 3 √(2 x₀/g) for e = ½."""
    fall = pk.Function(lambda t, x: jnp.stack([x[1], -jnp.ones_like(x[0])]))
    floor = Event(lambda t, x: x[0], lambda t, x: jnp.stack([0 * x[0], -0.5 * x[1]]))
    sim = pk.Simulation(Events(RK4(fall), floor), dt=0.1)
    with pytest.raises(StepSizeError):
        pk.run(sim, jnp.array([0.5, 0.0]), 40, progress=False)
    with pytest.raises(DeclarationError, match="takes events"):
        Events(RK4(fall))


def test_mistakes_are_named():
    height, same = lambda t, x: x[0], lambda t, x: x
    fall = pk.Function(lambda t, x: jnp.stack([x[1], -jnp.ones_like(x[0])]))
    noisy = pk.integrators.EulerMaruyama(fall, diffusion=0.1)
    for integrator, event, says in (
        (RK4(fall), Event(lambda t, x: x[0] < 0, same), "falls through zero"),
        (RK4(fall), Event(lambda t, x: x, same), "one number"),
        (RK4(fall), Event(lambda t, x: None, same), "condition returned None"),
        (RK4(fall), Event(height, lambda t, x: x[:1]), r"float64\[1\] in the place of"),
        (RK4(fall), Event(height, lambda t, x: None), "reset returned None"),
        (RK4(fall), Event(height, lambda t, x: {"x": x}), "'x': .* in the place of"),
        (noisy, Event(height, same), "EulerMaruyama draws some"),
    ):
        sim = pk.Simulation(Events(integrator, event), dt=0.1)
        with pytest.raises(DeclarationError, match=says):
            pk.simulate(sim, jnp.array([0.5, 0.0]), 2, key=0)


def test_a_reset_returns_lists_and_whole_numbers():
    """As a right-hand side does."""
    fall = pk.Function(lambda t, x: jnp.stack([x[1], -jnp.ones_like(x[0])]))
    height = lambda t, x: x[0]
    resets = lambda t, x: jnp.stack([0 * x[0], -x[1]]), lambda t, x: [0, -x[1]]
    ends = [
        pk.simulate(
            pk.Simulation(Events(RK4(fall), Event(height, reset)), dt=0.5), jnp.array([0.5, 0.0]), 4
        ).state
        for reset in resets
    ]
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize(
    "around",
    [
        lambda bath: Events(
            bath, Event(lambda t, s: s["atoms"].position[0, 0] + 5, lambda t, s: s)
        ),
        lambda bath: pk.Subcycle(bath, 2),
    ],
)
def test_the_energy_of_a_bath_inside_counts(around):
    atoms = pk.Particles([[0.3, 0.2], [1.2, 0.1]], [[1.0, 0.5], [-0.3, 0.4]])
    bath = pk.NoseHooverChain(pk.HarmonicTrap(1.0, component="atoms"), temperature=1.0, period=2.0)
    state = {"atoms": atoms, "thermostat": pk.integrators.ThermostatChain.at_rest()}
    record = pk.Every(20, energy=pk.quantities.ConservedEnergy())
    sim = pk.Simulation(around(bath), dt=0.02, observers=record)
    energy = np.asarray(pk.simulate(sim, state, 200).frames["energy"])
    np.testing.assert_allclose(energy, energy[0], rtol=2e-3)


def test_second_derivatives_by_what_moves_an_event():
    g = 9.81
    fall = pk.Function(lambda t, x: jnp.stack([x[1], jnp.full_like(x[1], -g)]))
    floor = Event(lambda t, x: x[0], lambda t, x: jnp.stack([0 * x[0], -0.8 * x[1]]))
    simulation = pk.Simulation(Events(RK4(fall), floor), dt=0.1)

    def height(start):
        return pk.simulate(simulation, jnp.stack([start, 0 * start]), 10).state[0]

    def expected(start):
        left = 1 - jnp.sqrt(2 * start / g)
        return 0.8 * jnp.sqrt(2 * g * start) * left - 0.5 * g * left**2

    for order in (jax.grad, jax.hessian):
        np.testing.assert_allclose(order(height)(1.3), order(expected)(1.3), rtol=1e-9)
