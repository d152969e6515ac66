"""A fault poisons: values and derivatives of what `simulate` returns are NaN, whatever the fault."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Fault, Function, poison_where
from physkit.fields import Field
from physkit.geometry import Box, Grid
from physkit.integrators import RK4, VelocityVerlet
from physkit.observe import Every, Guard
from physkit.particles import Particles
from physkit.particles.forces import LennardJones, Pairwise
from physkit.simulate import (
    Binomial,
    Direct,
    Forward,
    NestedCheckpoint,
    Reversible,
    Simulation,
    advance_member,
    init,
    observe_initial,
    simulate,
)

from .problems import Faulty, OverflowingForce, Springs, Sum, x_of


def flying(x: float = 0.9) -> Particles:
    """Passes x = 1, where `Faulty` sets its bit, after two steps of 0.1; everything stays finite."""
    return Particles(jnp.array([[x, 0.0]]), jnp.array([[1.0, 0.5]]))


def floats_of(result):
    """All that a result holds of floats: carry, frames and summary."""
    return [
        x
        for x in jax.tree.leaves((result.carry, result.frames, result.summary))
        if eqx.is_inexact_array(x)
    ]


def observers():
    return (Every(2, x=x_of, count=lambda now: jnp.int32(3)), Sum(1))


@pytest.mark.parametrize(
    ("adjoint", "what"),
    [
        (NestedCheckpoint(), "state"),
        (Forward(), "state"),
        (Reversible(), "state"),
        pytest.param(Direct(), "state", marks=pytest.mark.slow),
        pytest.param(Binomial(2), "state", marks=pytest.mark.slow),
        pytest.param(NestedCheckpoint(), "frames", marks=pytest.mark.slow),
    ],
    ids=lambda x: x if isinstance(x, str) else type(x).__name__,
)
def test_every_adjoint_gives_nan_gradients(adjoint, what):
    sim = Simulation(
        VelocityVerlet(Faulty(Fault.DISPLACEMENT)), 0.1, observers=Every(2, x=x_of), adjoint=adjoint
    )

    def loss(at):
        dt, x = at
        changed = eqx.tree_at(lambda s: s.dt, sim, dt)
        result = simulate(changed, flying(x), 4)
        return jnp.sum(result.state.position if what == "state" else result.frames["x"][0] ** 2)

    value, gradient = jax.jit(jax.value_and_grad(loss))((jnp.asarray(0.1), jnp.asarray(0.9)))
    assert np.isnan(value)
    assert all(np.isnan(x) for x in gradient), gradient
    # The same program without a fault: finite, and not zero.
    value, gradient = jax.jit(jax.value_and_grad(loss))((jnp.asarray(0.1), jnp.asarray(-0.9)))
    assert np.isfinite(value)
    assert np.isfinite(gradient[1])
    assert gradient[1] != 0


class TestValues:
    def test_a_fault_of_a_term_poisons_carry_frames_and_summary(self):
        sim = Simulation(VelocityVerlet(Faulty(Fault.SOLVER)), 0.1, observers=observers())
        result = jax.jit(lambda s: simulate(sim, s, 4))(flying())
        assert result.health.faults() == Fault.SOLVER
        assert all(np.all(np.isnan(x)) for x in floats_of(result))
        assert np.array_equal(result.frames["count"], [3, 3, 3])  # whole numbers have no NaN
        assert np.all(np.isfinite(result.times["x"]))

    def test_a_broken_guard_poisons(self):
        # Finite all the way: without the guard's bit nothing would look wrong.
        guard = Guard(2, lambda now: jnp.max(now.state.position) < 1)
        sim = Simulation(VelocityVerlet(Springs(1e-3)), 0.1, observers=observers(), guards=[guard])
        result = simulate(sim, flying(), 4)  # not compiled: the numbers of the bits can be seen
        assert result.health.faults() == Fault.GUARD
        assert all(np.all(np.isnan(x)) for x in floats_of(result))

    def test_an_overflow_poisons(self):
        force = OverflowingForce(entry_spacing=0.2)
        sim = Simulation(VelocityVerlet(force), 0.1, observers=observers())
        result = jax.jit(lambda s: simulate(sim, s, 4))(flying(0.7))
        assert Fault.OVERFLOW in result.health.faults()
        assert all(np.all(np.isnan(x)) for x in floats_of(result))

    def test_one_bad_member_of_a_batch_poisons_only_itself(self):
        sim = Simulation(VelocityVerlet(Faulty(Fault.DISPLACEMENT)), 0.1, observers=observers())

        def final(x):
            result = simulate(sim, flying(x), 4)
            return result.state.position, result.frames["x"], result.summary["total"]

        x = jnp.array([-3.0, 0.9, 0.1])
        batch = jax.jit(jax.vmap(final))(x)
        for part in batch:
            assert np.array_equal(
                np.isnan(part).any(axis=tuple(range(1, part.ndim))), [False, True, False]
            )
        gradient = jax.jit(jax.grad(lambda x: jnp.sum(jax.vmap(final)(x)[0])))(x)
        assert np.array_equal(np.isnan(gradient), [False, True, False])

    def test_all_frames_of_a_block_in_which_a_member_of_a_sweep_fails(self):
        fast, slow = Every(1, x=x_of), Every(4, y=x_of)
        sim = Simulation(VelocityVerlet(Faulty(Fault.DISPLACEMENT)), 0.1, observers=[fast, slow])
        carry, _ = observe_initial(sim, init(sim, flying()))
        plan = sim.integrator.prepare(carry.state, sim.dt)
        _, frames, bits = jax.jit(lambda c: advance_member(sim, plan, c))(carry)
        assert int(bits) == Fault.DISPLACEMENT
        assert all(np.all(np.isnan(x)) for x in frames.values())

    def test_a_sound_result_keeps_its_bits(self):
        x = jnp.array([-0.0, 1e-300, jnp.inf, 3.0])
        z = jax.lax.complex(x, -x)
        tree = (x, z, jnp.arange(3), jax.random.key(0), x.astype(jnp.float32))
        sound = jax.jit(poison_where)(tree, jnp.array(False))
        for a, b in zip(jax.tree.leaves(sound), jax.tree.leaves(tree), strict=True):
            assert a.dtype == b.dtype
            if a.dtype != tree[3].dtype:
                assert np.array_equal(a, b)
                assert np.array_equal(np.signbit(np.real(a)), np.signbit(np.real(b)))
        bad = poison_where(tree, jnp.array(True))
        assert np.all(np.isnan(bad[0]))
        assert np.all(np.isnan(np.real(bad[1])) & np.isnan(np.imag(bad[1])))


def test_a_fault_on_one_of_two_devices_poisons_all(monkeypatch):
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")  # emulated
    grid = Grid(Box([1.0]), 8)
    guard = Guard(2, lambda now: now.state.max() < 1)
    rate = Function(lambda t, u: u)
    sim = Simulation(RK4(rate), 0.1, observers=Every(2, u=lambda now: now.state), guards=[guard])

    def loss(scale):
        u = Field.from_function(grid, lambda x: scale * jnp.where(x > 0.8, 1.0, 0.5))
        result = simulate(sim, u, 4, devices=(2,))
        return jnp.sum(result.state.data), result

    (value, result), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(jnp.asarray(0.9))
    assert result.health.faults() == Fault.GUARD
    assert np.isnan(value)
    assert np.isnan(gradient)
    assert all(np.all(np.isnan(x)) for x in floats_of(result))


def test_an_exact_sum_out_of_range_has_no_finite_gradient():
    # Two particles so close that their force leaves the range of a quantum chosen for a far pair.
    force = Pairwise(LennardJones(), cutoff=3.0, exact=True, quantum=1e-30)
    x = jnp.array([[0.0, 0.0], [1.0, 0.0]])

    def loss(epsilon):
        pair = eqx.tree_at(lambda f: f.potential.epsilon, force, epsilon)
        sim = Simulation(VelocityVerlet(pair), 1e-3, observers=())
        result = simulate(sim, Particles(x, jnp.zeros((2, 2))), 1)
        return jnp.sum(result.state.velocity), result.health

    (value, health), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(jnp.asarray(1.0))
    assert Fault.EXACT_SUM_RANGE in health.faults()
    assert np.isnan(value)
    assert np.isnan(gradient)
