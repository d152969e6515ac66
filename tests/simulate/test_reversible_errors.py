"""What `Reversible` refuses, by name, and the marks by which it notices."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError

import physkit as pk
from physkit.core import (
    NotReversible,
    RangeError,
    exact_bits,
    replace_fields,
)
from physkit.simulate import init, simulate
from physkit.simulate.reversible._reversibility_report import _digest
from physkit.testing import check_equal

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
    "test_names_the_part_that_cannot_be_reversed[SSPRK3-integrator8-state8]",
    "test_adjoints_are_instances",
    "test_range_factor_is_one_or_more",
    "test_max_unsplit_is_a_number_of_steps",
    "test_marks_see_every_bit_of_a_state",
)


class TestStates:
    @pytest.mark.slow
    def test_a_run_in_pieces_has_the_same_bits(self):
        sim = argon()
        state = liquid(jnp.dtype(jnp.float32), pk.Box([4.6] * 3))
        whole = simulate(sim, state, 20).state
        first = simulate(sim, state, 8).carry
        pieces = simulate(sim, first, 12).state
        ran = pk.run(sim, state, 20, progress=False).carry.state
        for other in (pieces, ran):
            check_equal(other.fixed_point.position, whole.fixed_point.position, "pieces", "same")
            check_equal(other.velocity, whole.velocity, "pieces", "same")

    def test_a_state_changed_by_hand_drops_its_fixed_point_numbers(self):
        state = bodies().to_fixed_point(jnp.asarray(0.1), 1024.0)
        assert state.replace(charge=None).fixed_point is not None
        assert state.replace(position=state.position + 1).fixed_point is None

    def test_other_adjoints_differentiate_through_fixed_point_numbers(self):
        """A state of fixed-point numbers has its derivatives under another adjoint, too."""
        sim = pk.Simulation(
            pk.Leapfrog(MODULATED_TRAP), 0.05, guards=(), adjoint=pk.adjoints.Direct()
        )
        state = bodies()
        on = lambda s: s.to_fixed_point(jnp.asarray(0.05), 1024.0)
        by = lambda f: jax.grad(lambda v: end_of(sim, 5)(f(state.replace(velocity=v))))
        check_equal(by(on)(state.velocity), by(lambda s: s)(state.velocity), "slope", "solve")

    def test_a_number_that_leaves_its_range_is_a_fault(self):
        fast = pk.Particles([[0.0], [1.0]], [[0.0], [1e7]])
        far = pk.Simulation(
            pk.Leapfrog(TRAP), 1e-9, adjoint=pk.Reversible(range_factor=1.0), guards=()
        )
        push = pk.UniformAcceleration([1e20])
        result = simulate(dataclasses.replace(far, integrator=pk.Leapfrog(push)), fast, 50)
        with pytest.raises(RangeError, match="range_factor"):
            result.health.check()


def irreversible_cases():
    pair = pk.Pairwise(pk.LennardJones(), 1.5, skin=0.2)
    rk4 = pk.RK4(pk.integrators.EquationsOfMotion(TRAP))
    law = pk.equations.Wave(1.0)
    yield "BAOAB", pk.BAOAB(TRAP, 1.0, 1.0), bodies()
    bath = pk.VelocityRescaling(pk.VelocityVerlet(TRAP), 1.0, 1.0)
    yield "VelocityRescaling", bath, bodies()
    barostat = pk.StochasticCellRescaling(bath, 1.0, 1.0, 1.0)
    yield "StochasticCellRescaling", barostat, bodies()
    yield "RK4", pk.Strang(pk.VelocityVerlet(TRAP), rk4), bodies()
    yield "RemoveMomentum", pk.Lie(pk.Leapfrog(TRAP), pk.integrators.RemoveMomentum()), bodies()
    yield "NoseHooverChain", pk.NoseHooverChain(TRAP, 1.0, 1.0), bodies()
    yield "exact=True", pk.VelocityVerlet(pair), liquid(jnp.dtype(jnp.float64), pk.Box([4.6] * 3))
    yield "Euler", pk.Euler(law), waves()[1]
    yield "SSPRK3", pk.SSPRK3(law.drift), waves()[1]


class TestErrors:
    @pytest.mark.parametrize(("name", "integrator", "state"), irreversible_cases())
    def test_names_the_part_that_cannot_be_reversed(self, name, integrator, state):
        sim = pk.Simulation(integrator, 0.01, adjoint=pk.Reversible())
        with pytest.raises(NotReversible, match=name):
            init(sim, state)

    def test_names_floats_without_a_fixed_point_form(self):
        sim = pk.Simulation(pk.Euler(lambda t, s: {"x": s["v"]}), 0.1, adjoint=pk.Reversible())
        with pytest.raises(NotReversible, match=r"other floating numbers, of shape \(2,\)"):
            init(sim, {"x": jnp.zeros(2), "v": jnp.ones(2)})

    def test_no_forward_mode(self):
        sim = pk.Simulation(pk.Leapfrog(TRAP), 0.1, adjoint=pk.Reversible())
        state = bodies()
        go = lambda v: simulate(sim, state.replace(velocity=v), 3).state.position
        with pytest.raises(NotReversible, match="no forward mode"):
            jax.jvp(go, (state.velocity,), (state.velocity,))

    @pytest.mark.filterwarnings("ignore::physkit.core.PhyskitWarning")
    @pytest.mark.parametrize("method", [pk.VelocityVerlet, pk.Leapfrog, pk.integrators.PEFRL])
    def test_names_a_force_that_depends_on_velocities(self, method):
        drag = pk.ExternalForce(lambda t, p: -0.1 * p.velocity)
        for force, name in [
            (AntiDrag(), "AntiDrag depends on velocities"),
            (
                TRAP + pk.forces.Modulated(drag, 1.0),
                r"Modulated\(ExternalForce\) depends on velocities",
            ),
        ]:
            sim = pk.Simulation(method(force), 0.05, guards=(), adjoint=pk.Reversible())
            with pytest.raises(NotReversible, match=name):
                eqx.filter_jit(lambda s, sim=sim: by_floats(end_of(sim, 4), s))(bodies())

    @pytest.mark.parametrize("by", ["state", "parameter"])
    @pytest.mark.parametrize("jitted", [False, True])
    def test_no_second_order(self, by, jitted):
        state = bodies()

        def energy(x):
            trap = pk.HarmonicTrap(x[0] if by == "parameter" else 1.0)
            sim = pk.Simulation(pk.Leapfrog(trap), 0.1, guards=(), adjoint=pk.Reversible())
            return end_of(sim, 3)(state.replace(velocity=x) if by == "state" else state)

        x = state.velocity if by == "state" else jnp.ones(1)
        of = jax.jit if jitted else lambda f: f
        along = lambda x: jnp.vdot(jax.grad(energy)(x), x)
        value = lambda x: jax.value_and_grad(energy)(x)[0]
        by_jvp = lambda x: jax.jvp(jax.grad(energy), (x,), (x,))[1]
        for second in (jax.hessian(energy), jax.grad(along), jax.grad(value), by_jvp):
            with pytest.raises(NotReversible, match="second order"):
                of(second)(x)

    def test_a_factor_of_a_derivative_has_its_own(self):
        sim = pk.Simulation(pk.Leapfrog(TRAP), 0.1, guards=(), adjoint=pk.Reversible())
        slope = jax.grad(lambda v: end_of(sim, 3)(bodies().replace(velocity=v)))(bodies().velocity)
        energy = lambda a, v: a * end_of(sim, 3)(bodies().replace(velocity=v))
        by_scale = lambda a: jnp.sum(jax.grad(energy, 1)(a, bodies().velocity))
        check_equal(jax.grad(by_scale)(2.0), jnp.sum(slope), "slope", "solve")

    @pytest.mark.parametrize("range_factor", [0.5, "a", None, float("inf"), float("nan")])
    def test_range_factor_is_one_or_more(self, range_factor):
        with pytest.raises((pk.errors.PhyskitError, TypeCheckError), match="range_factor"):
            pk.Reversible(range_factor=range_factor)

    @pytest.mark.parametrize("max_unsplit", [0, -1, "a", 2.5])
    def test_max_unsplit_is_a_number_of_steps(self, max_unsplit):
        with pytest.raises((pk.errors.PhyskitError, TypeCheckError), match="max_unsplit"):
            pk.NestedCheckpoint(max_unsplit)

    @pytest.mark.parametrize("adjoint", ["reversible", None, pk.Reversible])
    def test_adjoints_are_instances(self, adjoint):
        # Where annotations are checked, as in these tests, their error comes first.
        message = "adjoint must be an AbstractAdjoint|Parameter annotations: .*adjoint: "
        with pytest.raises((pk.errors.DeclarationError, TypeCheckError), match=message):
            pk.Simulation(pk.Leapfrog(TRAP), 0.1, adjoint=adjoint)


def test_marks_see_every_bit_of_a_state():
    sim = pk.Simulation(pk.VelocityVerlet(TRAP), 0.01)
    state = pk.Reversible().prepare_state(sim, bodies())

    def flip(x, bit):
        word = jnp.ones((), x.dtype) << bit
        return x.at[(0,) * x.ndim].set(x[(0,) * x.ndim] ^ word)

    (first, *_), before = exact_bits(state), _digest(state)
    for bit in range(0, 8 * first.dtype.itemsize - 1, 7):
        changed = jax.tree.map(
            lambda x, b=bit: flip(x, b) if x.dtype == first.dtype and x.ndim else x,
            state.fixed_point.position,
        )
        other = replace_fields(
            state, {"fixed_point": replace_fields(state.fixed_point, {"position": changed})}
        )
        assert np.any(_digest(other) != before), bit
