"""`Reversible`: forward and back to the last bit, derivatives, and errors."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    Fault,
    FixedPoint,
    NotReversible,
    PhyskitWarning,
    cast_floats,
    static,
)
from physkit.particles.forces import AbstractForce
from physkit.simulate import init, reversibility_report, simulate
from physkit.testing import check_equal, check_reversible

from .reversible_cases import (
    MODULATED_TRAP,
    TRAP,
    AntiDrag,
    argon,
    bodies,
    by_floats,
    end_of,
    liquid,
    waves,
)

FAST_CASES = (
    "test_sums_are_reversed_to_the_bit[float32]",
    "test_of_a_batch",
)


def split_wave(law):
    return pk.Strang(pk.Euler(law.kick), pk.Euler(law.drift))


class TestFixedPoint:
    def test_sums_are_reversed_to_the_bit(self, dtype):
        rng = np.random.default_rng(0)
        y = jnp.asarray(rng.uniform(-0.5, 0.5, 1000), dtype)
        steps = [
            jnp.asarray(rng.uniform(-0.5, 0.5, 1000) * 10.0 ** rng.uniform(-20, 0, 1000), dtype)
            for _ in range(8)
        ]
        number, turns = FixedPoint.from_float(y), 0
        for step in steps:
            number, wrapped = number.add(step)
            turns += np.asarray(wrapped)
        total = np.asarray(y, float) + sum(np.asarray(s, float) for s in steps)
        assert np.max(np.abs(np.asarray(number.to_float(), float) + turns - total)) < 3e-8
        assert np.any(turns != 0)
        for step in steps[::-1]:
            number, wrapped = number.add(-step)
            turns = turns + np.asarray(wrapped)
        assert not np.any(turns)
        for a, b in zip(
            jax.tree.leaves(number), jax.tree.leaves(FixedPoint.from_float(y)), strict=True
        ):
            assert np.array_equal(a, b)

    @pytest.mark.parametrize("y", [-0.5, 0.5, 0.0, 0.49999997])
    def test_the_nearest_number_at_the_ends_of_the_range(self, y, dtype):
        y = jnp.asarray(y, dtype)
        assert (float(FixedPoint.from_float(y).to_float()) - float(y)) % 1 == 0


class Link(AbstractForce):
    """Springs from the particles of one component to those of another."""

    component: str = static()
    to: str = static()
    conserves_momentum: ClassVar[bool] = False

    def force(self, clock, state):
        return state[self.to].position - 2 * state[self.component].position


# Two components, each moved by its own part, whose force depends on the other.
MODULATED_LINK, LINK = pk.forces.Modulated(Link("a", "b"), 7.0), Link("b", "a")


METHODS = [
    pk.VelocityVerlet(MODULATED_TRAP),
    pk.Leapfrog(MODULATED_TRAP),
    pk.integrators.Yoshida(MODULATED_TRAP),
    pk.integrators.KahanLi(MODULATED_TRAP, 6),
    pk.integrators.PEFRL(MODULATED_TRAP),
    pk.Strang(pk.VelocityVerlet(MODULATED_LINK), pk.Leapfrog(LINK)),
    pk.integrators.Composition(pk.Strang(pk.VelocityVerlet(MODULATED_LINK), pk.Leapfrog(LINK))),
    pk.Subcycle(pk.VelocityVerlet(MODULATED_TRAP), 3),
    pk.Boris([0.3, 0.2, 1.0], [0.1, 0.0, 0.0], force=TRAP),
]


# The others in float64; all in both precisions in the full suite.
IN_FLOAT32 = {"Yoshida", "KahanLi", "PEFRL", "Composition", "Boris"}


SLOW = [
    pk.integrators.Suzuki(MODULATED_TRAP),
    pk.integrators.KahanLi(MODULATED_TRAP, 8),
    pk.integrators.BlanesMoan(MODULATED_TRAP),
    pk.integrators.BlanesMoan(MODULATED_TRAP, 6),
    pk.Lie(pk.VelocityVerlet(MODULATED_LINK), pk.Leapfrog(LINK)),
    pk.Subcycle(
        pk.Strang(
            pk.VelocityVerlet(MODULATED_LINK),
            pk.Boris([0.0, 0.0, 1.0], force=LINK, component="b"),
        ),
        2,
    ),
]


def check_forward_and_back(integrator, state, dt=0.03, steps=100):
    sim = pk.Simulation(integrator, dt, guards=(), adjoint=pk.Reversible())
    sim = cast_floats(sim, state.position.dtype if isinstance(state, pk.Particles) else None)
    if isinstance(integrator.drifts[0][1], str):
        state = {"a": state, "b": state.replace(position=-0.5 * state.position)}
    found = eqx.filter_jit(lambda s, c: reversibility_report(s, c, steps))(sim, init(sim, state))
    found.check()
    assert bool(found.bitwise)
    assert bool(jnp.all(found.matches))


class TestForwardAndBack:
    @pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
    def test_every_method(self, method):
        dtype = jnp.float32 if type(method).__name__ in IN_FLOAT32 else jnp.float64
        check_forward_and_back(method, bodies(dtype))

    @pytest.mark.slow
    @pytest.mark.parametrize("method", METHODS + SLOW, ids=lambda m: type(m).__name__)
    def test_every_method_in_both_precisions(self, method, dtype):
        check_forward_and_back(method, bodies(dtype), steps=1000)

    def test_boris_in_the_plane(self):
        check_forward_and_back(pk.Boris(1.0, force=TRAP), bodies(jnp.float32, d=2), dt=0.2)

    @pytest.mark.slow
    @pytest.mark.parametrize("space", ["box", "triclinic"])
    def test_a_liquid_with_a_neighbor_list(self, space, dtype):
        side = 4.6
        tilted = pk.Triclinic([[side, 0, 0], [1.2, side, 0], [-0.7, 0.6, side]])
        box = pk.Box([side] * 3) if space == "box" else tilted
        sim = argon()
        carry = init(sim, liquid(dtype, box))
        found = eqx.filter_jit(lambda s, c: reversibility_report(s, c, 3000))(sim, carry)
        found.check()
        assert bool(found.bitwise)

    @pytest.mark.slow
    def test_a_liquid_whose_list_is_rebuilt_at_other_steps(self):
        sim = argon()
        carry = init(sim, liquid(jnp.dtype(jnp.float32), pk.Box([4.6] * 3)))
        found = eqx.filter_jit(lambda s, c: reversibility_report(s, c, 200))(sim, carry)
        found.check()
        assert np.array_equal(found.state.image, carry.state.image)
        result = simulate(sim, carry, 200)
        assert (
            int(result.carry.aux[1][0].neighbors.num_rebuilds) > 2
        )  # at other steps than backward

    @pytest.mark.parametrize("walls", [False, True])
    def test_waves(self, walls):
        law, state = waves(jnp.float32 if walls else jnp.float64, walls)
        sim = pk.Simulation(split_wave(law), 0.05, guards=(), adjoint=pk.Reversible())
        found = eqx.filter_jit(lambda s, c: reversibility_report(s, c, 100))(sim, init(sim, state))
        found.check()
        assert bool(found.bitwise)

    def test_a_hidden_force_of_velocities_is_reported(self):
        anti_drag = pk.VelocityVerlet(AntiDrag(hidden=True))
        sim = pk.Simulation(anti_drag, 0.05, guards=(), adjoint=pk.Reversible())
        with pytest.warns(PhyskitWarning, match="AntiDrag depends on velocities"):
            found = reversibility_report(sim, bodies(), 64)
        assert found.health.faults() == Fault.REVERSAL
        with pytest.raises(NotReversible, match=r"between the steps 6\d and 6\d"):
            found.check()
        with pytest.warns(PhyskitWarning):
            slopes = eqx.filter_jit(lambda s: by_floats(end_of(sim, 8), s))(bodies())
        assert np.all(np.isnan(slopes))


def every_result(sim, state, steps):
    """A number that every kind of result contributes to."""
    result = simulate(sim, state, steps)
    last = result.state
    parts = last.values() if isinstance(last, dict) else [last]
    total = sum(jnp.sum(p.velocity**2) + jnp.sum(jnp.sin(p.unwrapped)) for p in parts)
    frames = sum(jnp.sum(jnp.cos(x)) for x in jax.tree.leaves(result.frames))
    return (
        total
        + frames
        + sum(jnp.sum(x) for x in jax.tree.leaves(eqx.filter(result.summary, eqx.is_inexact_array)))
    )


def by_reversible_and_direct(sim, state, steps, objective=every_result):
    """Derivatives by everything, by `Reversible` and by `Direct`."""
    floats, rest = eqx.partition((sim, state), eqx.is_inexact_array)

    def gradient(adjoint):
        def loss(floats):
            sim, state = eqx.combine(floats, rest)
            return objective(dataclasses.replace(sim, adjoint=adjoint), state, steps)

        return jax.jit(jax.grad(loss))(floats)

    return gradient(pk.Reversible()), gradient(pk.adjoints.Direct())


class TestDerivatives:
    @pytest.mark.slow
    def test_of_a_liquid_with_observers_and_guards(self):
        kinetic = lambda now: jnp.sum(now.state.velocity**2)
        sim = argon(
            observers=(
                pk.Every(2, k=kinetic, x=lambda now: now.state.position[:2]),
                pk.Every(6, energy=pk.PotentialEnergy()),
                pk.Average(2, mean=pk.KineticEnergy()),
            )
        )
        sim = dataclasses.replace(sim, guards=(pk.guards.Finite(interval=6),))
        state = liquid(jnp.dtype(jnp.float64), pk.Box([4.6] * 3))
        check_equal(*by_reversible_and_direct(sim, state, 12), "derivatives", "solve")

    def test_of_several_components_on_a_mesh(self):
        box = pk.Box([1.0, 1.0])
        draw = lambda n, seed: np.random.default_rng(seed).uniform(size=(n, 2))
        kind = lambda n, q, m, seed: pk.Particles(
            draw(n, seed), draw(n, seed + 5) - 0.5, charge=q, mass=m, space=box
        )
        state = {"electrons": kind(9, -1.0, 1.0, 0), "ions": kind(7, 1.0, 20.0, 1)}
        mesh = pk.ParticleMesh(pk.Grid(box, (8, 8)), component=("electrons", "ions"))
        sim = pk.Simulation(pk.VelocityVerlet(mesh), 0.05)
        check_equal(*by_reversible_and_direct(sim, state, 6), "derivatives", "solve")

    def test_of_an_expanding_universe(self):
        box = pk.Box([1.0, 1.0])
        at = np.random.default_rng(0).uniform(size=(8, 2))
        state = pk.Particles(at, 0 * at, mass=0.1, space=box)
        force = pk.forces.Comoving(pk.ParticleMesh(pk.Grid(box, (8, 8)), pk.mesh.Gravity(1.0)), 1.0)
        sim = pk.Simulation(pk.Leapfrog(force), 0.05, t0=-4.0)
        check_equal(*by_reversible_and_direct(sim, state, 5), "derivatives", "solve")

    @pytest.mark.parametrize("walls", [False, True])
    def test_waves(self, walls):
        law, state = waves(walls=walls)
        sim = pk.Simulation(split_wave(law), 0.05, guards=())

        def objective(sim, state, steps):
            last = simulate(sim, state, steps).state
            return sum(jnp.sum(jnp.sin(3 * f.data + 1)) for f in last.values())

        check_equal(*by_reversible_and_direct(sim, state, 7, objective), "derivatives", "solve")

    def test_of_boris(self):
        check_reversible(METHODS[-1], bodies(), 0.05, steps=32)

    def test_of_a_batch(self):
        sim = pk.Simulation(pk.Leapfrog(MODULATED_TRAP), 0.05, guards=(), adjoint=pk.Reversible())
        state = bodies()
        by = jax.jit(jax.grad(lambda v: end_of(sim, 5)(state.replace(velocity=v))))
        many = jnp.stack([state.velocity, 2 * state.velocity])
        batched = jax.jit(jax.vmap(by))(many)
        check_equal(batched, jnp.stack([by(v) for v in many]), "vmap", "solve")

    def test_memory_does_not_grow_with_steps(self):
        sim = pk.Simulation(pk.VelocityVerlet(TRAP), 0.05, guards=(), adjoint=pk.Reversible())
        state = bodies()

        def temporary_bytes(steps):
            by = jax.grad(lambda v: end_of(sim, steps)(state.replace(velocity=v)))
            return jax.jit(by).lower(state.velocity).compile().memory_analysis().temp_size_in_bytes

        assert temporary_bytes(10_000) == temporary_bytes(100)
