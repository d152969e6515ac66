"""`Reversible`: forward and back to the last bit, derivatives, and errors."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError

import physkit as pk
from physkit.core import (
    Fault,
    FixedPoint,
    NotReversible,
    PhyskitWarning,
    RangeError,
    cast_floats,
    exact_bits,
    param,
    replace_fields,
    static,
)
from physkit.particles.forces import AbstractForce
from physkit.simulate import init, reversibility_report, simulate
from physkit.simulate.reversible._reversibility_report import _digest
from physkit.testing import check_equal, check_reversible

FAST_CASES = (
    "test_sums_are_reversed_to_the_bit[float32]",
    "test_of_a_batch",
    "test_names_the_part_that_cannot_be_reversed[SSPRK3-integrator8-state8]",
    "test_adjoints_are_instances",
    "test_range_factor_is_one_or_more",
    "test_max_unsplit_is_a_number_of_steps",
    "test_marks_see_every_bit_of_a_state",
)

TRAP = pk.HarmonicTrap(1.0)
MODULATED_TRAP = pk.forces.Modulated(TRAP, 2.1)


def bodies(dtype=jnp.float64, d=3):
    rng = np.random.default_rng(1)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape), dtype)
    frozen = [False, False, False, True]
    charge = [1.0, 2.0, -1.0, 1.0]
    return pk.Particles(
        draw(4, d), 0.3 * draw(4, d), mass=[1.0, 0.7, 2.0, 1.0], charge=charge, frozen=frozen
    )


def liquid(dtype, space, side=4, seed=0):
    corners = np.stack(np.meshgrid(*[np.arange(side)] * 3), -1).reshape(-1, 3)
    cell = np.asarray(space.cell(3))
    velocity = np.random.default_rng(seed).normal(size=corners.shape)
    position = (corners + 0.5) / side @ cell
    return cast_floats(pk.Particles(position, velocity - velocity.mean(0), space=space), dtype)


def argon(adjoint=None, dt=0.004, **parts):
    force = pk.Pairwise(pk.LennardJones(), 1.9, 0.2, exact=True)
    return pk.Simulation(
        pk.VelocityVerlet(force), dt, adjoint=adjoint or pk.Reversible(), guards=(), **parts
    )


def waves(dtype=jnp.float64, walls=False):
    if not walls:
        grid = pk.Grid(pk.Box([2 * np.pi] * 2), (8, 8))
        u = pk.Field.from_function(grid, lambda x, y: jnp.sin(x) * jnp.cos(y), dtype=dtype)
        law = pk.equations.Wave(1.0)
        return law, {"displacement": u, "velocity": u * 0.0}
    grid = pk.Grid(pk.Box([1.0, 2.0], periodic=False), (6, 8))
    bump = lambda x, y: jnp.exp(-9 * ((x - 0.3) ** 2 + (y - 1) ** 2))
    flow = lambda k: pk.Field(
        jnp.zeros(grid.local_shape_at(grid.face(k)), dtype),
        grid,
        grid.face(k),
        pk.boundaries.Dirichlet(0.0),
    )
    surface = pk.Field.from_function(grid, bump, boundary=pk.boundaries.Neumann(0.0), dtype=dtype)
    state = {"elevation": surface, "velocity_x": flow("x"), "velocity_y": flow("y")}
    return pk.equations.GravityWaves(1.0, 1.0), state


def split_wave(law):
    return pk.Strang(pk.Euler(law.kick), pk.Euler(law.drift))


class AntiDrag(AbstractForce):
    """A force that depends on velocities, which VelocityVerlet cannot take."""

    hidden: bool = static(default=False)  # from derivatives
    strength: jax.Array = param(0.1)
    component: str | None = static(default=None)
    conserves_momentum: ClassVar[bool] = False

    def force(self, clock, state):
        v = jax.lax.stop_gradient(state.velocity) if self.hidden else state.velocity
        return self.strength * v - state.position


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
            slopes = eqx.filter_jit(lambda s: _by_floats(end_of(sim, 8), s))(bodies())
        assert np.all(np.isnan(slopes))


def end_of(sim, steps):
    return lambda state: jnp.sum(simulate(sim, state, steps).state.position ** 2)


def _by_floats(objective, state):
    floats, rest = eqx.partition(state, eqx.is_inexact_array)
    return jax.grad(lambda f: objective(eqx.combine(f, rest)))(floats).position


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
                eqx.filter_jit(lambda s, sim=sim: _by_floats(end_of(sim, 4), s))(bodies())

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
