"""Integrators as a whole: parts of equations left out, drifts made twice, forces that depend on velocities."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import DeclarationError, PhyskitWarning, depends_on
from physkit.fields import AbstractEquation
from physkit.fields.equations import Diffusion, FisherKPP, KortewegDeVries, Schroedinger, Wave
from physkit.integrators import (
    ARS222,
    BAOAB,
    ETDRK2,
    ETDRK4,
    PEFRL,
    RK4,
    AbstractIntegrator,
    Boris,
    Brownian,
    Composition,
    EquationsOfMotion,
    Euler,
    ExactLinear,
    ExactWave,
    Leapfrog,
    Lie,
    PotentialPropagator,
    SplitStep,
    Strang,
    Subcycle,
    VelocityVerlet,
    Yoshida,
)
from physkit.particles.forces import ExternalForce
from physkit.simulate.distributed import _domain

LINE = pk.Grid(pk.Box([8.0]), (16,))
HUMP = pk.Field.from_function(LINE, lambda x: jnp.exp(-((x - 4.0) ** 2)))
PACKET = pk.Field.from_function(LINE, lambda x: jax.lax.complex(jnp.exp(-((x - 4.0) ** 2)), 0 * x))
TRAP = Schroedinger(lambda t, x: 0.5 * (x - 4.0) ** 2)
KDV = KortewegDeVries(6.0, 0.1)
ATOM = pk.Particles([[1.0], [2.0]], [[0.5], [-0.5]])
SPRING = pk.HarmonicTrap(1.0)
DROPS = {"drops": ATOM, "others": ATOM}


class Kicked(AbstractEquation):
    """Diffusion with a source that only its rate knows."""

    component: str | None = pk.static(default=None)

    def symbol(self, field):
        return Diffusion(0.1).symbol(field)

    def rate(self, clock, state):
        return state.map(jnp.ones_like)


def trap(component=None):
    return pk.HarmonicTrap(1.0, component=component)


def init(integrator, state, dt=0.01):
    return pk.init(pk.Simulation(integrator, dt=dt), state, key=jax.random.key(0))


# --- parts of equations ---------------------------------------------------------------------------

# What leaves a part of an equation out, or takes one twice; the state; what the error says.
NOT_WHOLE = {
    "potential": (lambda: ExactLinear(TRAP), PACKET, "Schroedinger.*nonlinear part never.*SplitStep"),
    "kinetic": (lambda: PotentialPropagator(TRAP), PACKET, "its linear part never"),
    "nonlinear": (lambda: ExactLinear(KDV), HUMP, "KortewegDeVries.*nonlinear part never.*ETDRK4"),
    "in a splitting": (
        lambda: Strang(RK4(FisherKPP(1.0)), ExactLinear(KDV)), HUMP, "nonlinear part never",
    ),
    "deep inside": (
        lambda: Lie(RK4(lambda t, u: u), Subcycle(Composition(Strang(
            ExactLinear(Diffusion(0.1)), ExactLinear(TRAP))), 2)), PACKET, "nonlinear part never",
    ),
    "twice": (lambda: Strang(RK4(KDV), ExactLinear(KDV)), HUMP, "linear part twice"),
    "of a name": (
        lambda: ExactLinear(Schroedinger(1.0, component="psi")), {"psi": PACKET}, "of 'psi'",
    ),
    "own rate, exact": (lambda: ExactLinear(Kicked()), HUMP, "its own rate part never"),
    "own rate, ETDRK2": (lambda: ETDRK2(Kicked()), HUMP, "its own rate part never"),
    "own rate, ARS222": (lambda: ARS222(Kicked()), HUMP, "its own rate part never"),
}  # fmt: skip

WHOLE = {
    "linear": (lambda: ExactLinear(Diffusion(0.1)), HUMP),
    "both halves": (lambda: Strang(PotentialPropagator(TRAP), ExactLinear(TRAP)), PACKET),
    "split step": (lambda: SplitStep(TRAP, 4), PACKET),
    "reaction": (lambda: Strang(RK4(FisherKPP(1.0)), ExactLinear(Diffusion(0.1))), HUMP),
    "two equations": (lambda: ETDRK4(KDV, Diffusion(0.1)), HUMP),
    "own rate": (lambda: RK4(Kicked()), HUMP),
}


@pytest.mark.parametrize("case", NOT_WHOLE)
def test_an_equation_that_is_not_advanced_as_a_whole_is_refused(case):
    build, state, message = NOT_WHOLE[case]
    with pytest.raises(DeclarationError, match=message):
        init(build(), state)


@pytest.mark.parametrize("case", WHOLE)
def test_whole_equations_pass(case):
    build, state = WHOLE[case]
    init(build(), state)


# --- drifts ---------------------------------------------------------------------------------------

OVERLAPPING = {
    "Strang": (lambda: Strang(VelocityVerlet(SPRING), VelocityVerlet(SPRING)), ATOM,
        r"sum the forces in one, VelocityVerlet\(a \+ b\)"),
    "Lie": (lambda: Lie(VelocityVerlet(SPRING), Leapfrog(SPRING)), ATOM, "VelocityVerlet and Leapfrog"),
    "Yoshida": (lambda: Strang(Yoshida(SPRING), PEFRL(SPRING)), ATOM, "Yoshida and PEFRL"),
    "heat bath": (lambda: Lie(BAOAB(SPRING, 1.0, 1.0), VelocityVerlet(SPRING)), ATOM, "BAOAB and"),
    "Brownian": (lambda: Lie(Brownian(SPRING, 1.0, 1.0), Brownian(SPRING, 1.0, 1.0)), ATOM, "Brownian"),
    "rates": (lambda: Strang(RK4(EquationsOfMotion(SPRING)), VelocityVerlet(SPRING)), ATOM,
        "EquationsOfMotion and VelocityVerlet"),
    "one sum": (lambda: RK4(EquationsOfMotion(SPRING), EquationsOfMotion(SPRING)), ATOM,
        r"EquationsOfMotion\(a \+ b\)"),
    "nested": (lambda: Lie(Subcycle(VelocityVerlet(trap("drops")), 2), Composition(Strang(
        VelocityVerlet(trap("others")), Leapfrog(trap("drops"))))), DROPS, "both move 'drops'"),
    "waves": (lambda: RK4(Wave(1.0), Wave(2.0)), {"displacement": HUMP, "velocity": HUMP}, "displacement"),
    "exact wave": (lambda: Strang(Euler(Wave(1.0).drift), ExactWave(Wave(1.0))),
        {"displacement": HUMP, "velocity": HUMP}, "WaveDrift and Wave"),
}  # fmt: skip

APART = {
    "two components": (
        lambda: Strang(VelocityVerlet(trap("drops")), VelocityVerlet(trap("others"))), DROPS,
    ),
    "sum": (lambda: VelocityVerlet(SPRING + SPRING), ATOM),
    "kick and drift": (
        lambda: Strang(Euler(Wave(1.0).kick), Euler(Wave(1.0).drift)),
        {"displacement": HUMP, "velocity": HUMP},
    ),
}  # fmt: skip


class Either(AbstractIntegrator):
    """One of two integrators, by the parity of the step: an integrator of a user's own."""

    first: AbstractIntegrator
    second: AbstractIntegrator

    def prepare(self, state, dt):
        return self.first.prepare(state, dt)

    def init(self, plan, clock, state):
        return self.first.init(plan, clock, state)

    def refresh(self, plan, clock, state, aux):
        return self.first.refresh(plan, clock, state, aux)

    def step(self, plan, clock, state, aux):
        return self.first.step(plan, clock, state, aux)


def test_alternatives_pass():
    init(Either(VelocityVerlet(SPRING), Leapfrog(SPRING)), ATOM)


@pytest.mark.parametrize("case", OVERLAPPING)
def test_two_drifts_of_one_component_are_refused(case):
    build, state, message = OVERLAPPING[case]
    with pytest.raises(DeclarationError, match=message):
        init(build(), state)


@pytest.mark.parametrize("case", APART)
def test_drifts_of_several_components_pass(case):
    build, state = APART[case]
    init(build(), state)


# --- forces that depend on velocities -------------------------------------------------------------

DRAG = ExternalForce(lambda t, p: -0.1 * p.velocity)


class Funnel(pk.AbstractForce):
    """A force that carries velocities through every kind of control flow, but only one of them out."""

    conserves_momentum = False
    reads: bool = pk.static(default=True)
    component: str | None = pk.static(default=None)

    def force(self, clock, state):
        x, v = state.position, state.velocity

        def turn(carry, _):
            a, b, c = carry
            return (b, a if self.reads else a * 2, c + v[0, 0]), None

        (a, _, c), _ = jax.lax.scan(
            turn, (x, v if self.reads else x, c0 := jnp.zeros(())), None, length=1
        )
        a = jax.lax.cond(x[0, 0] > 0, lambda a, c: (a, c), lambda a, c: (2 * a, c + 1), a, c)[0]
        a, _ = jax.lax.while_loop(lambda s: s[1] < 2, lambda s: (s[0] * 2, s[1] + 1), (a, c0))
        return jax.checkpoint(jax.jit(jnp.sin))(jax.nn.relu(a)) + jnp.where(x > 0, x, 0)


@pytest.mark.parametrize(
    "build",
    [
        VelocityVerlet, Leapfrog, PEFRL, Yoshida,
        lambda f: BAOAB(SPRING + f, 1.0, 1.0), lambda f: Brownian(f, 1.0, 1.0),
        lambda f: Lie(Subcycle(VelocityVerlet(f), 2), pk.integrators.RemoveMomentum()),
    ],
)  # fmt: skip
def test_forces_of_velocities_warn_where_forces_are_of_positions(build):
    with pytest.warns(PhyskitWarning, match="ExternalForce depends on velocities, .*RK4") as seen:
        init(build(DRAG), ATOM)
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        init(build(SPRING), ATOM)


def test_boris_warns_of_them_too():
    ions = pk.Particles([[0.0, 0.0]], [[1.0, 0.0]], charge=1.0)
    with pytest.warns(PhyskitWarning, match="Boris takes forces of positions"):
        init(Boris(1.0, force=DRAG), ions)


def over_devices(force, state, monkeypatch):
    """What is warned of before a state is cut over devices: what follows takes seconds to compile."""

    def stop(*_):
        raise NotImplementedError

    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    monkeypatch.setattr(_domain, "add_migration_margins", stop)
    domain = _domain.DistributedDomain(pk.Simulation(VelocityVerlet(force), dt=0.01), 2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with pytest.raises(NotImplementedError):
            domain.init(state)
    return [str(one.message) for one in seen if one.category is PhyskitWarning]


def test_warnings_are_given_over_devices_too(monkeypatch):
    # More particles than a list may have without numbers that can be seen.
    x = (np.arange(1089) + 0.5) / 33 % 1.0
    x = np.stack([x, np.repeat(x[:33], 33)], 1)
    atoms = pk.Particles(x, 1.0 + 0 * x, space=pk.Box([1.0, 1.0]))
    pairs = pk.Pairwise(pk.potentials.LennardJones(1.0, 0.01), cutoff=0.03, component="a")
    (found,) = over_devices(pairs, {"a": atoms, "b": atoms}, monkeypatch)
    assert "nothing moves 'b'" in found
    assert not over_devices(pairs, {"a": atoms}, monkeypatch)
    dragged = pk.Simulation(VelocityVerlet(SPRING + DRAG), dt=0.01)
    with pytest.warns(PhyskitWarning, match="ExternalForce depends on velocities") as seen:
        _domain.result_shapes(dragged, atoms)
    assert len(seen) == 1


def test_rates_may_depend_on_velocities():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        init(RK4(EquationsOfMotion(SPRING + DRAG)), ATOM)


def test_dependence_is_followed_through_control_flow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        init(VelocityVerlet(Funnel(reads=False)), ATOM)
    with pytest.warns(PhyskitWarning, match="Funnel depends on velocities"):
        init(VelocityVerlet(Funnel()), ATOM)


def forces_that_say_so():
    box = pk.Box([4.0, 4.0, 4.0])
    x = [[0.5, 0.5, 0.5], [2.5, 2.0, 3.0]]
    ions = pk.Particles(x, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], charge=[1.0, -1.0], space=box)
    bodies = pk.Particles(x, ions.velocity)
    yield pk.Pairwise(pk.LennardJones(), cutoff=1.5), ions
    yield pk.Pairwise(pk.LennardJones(), cutoff=1.5, use_neighbor_list=True), ions
    yield pk.DirectGravity(), bodies
    yield pk.ParticleMesh(pk.Grid(box, (4, 4, 4))), ions
    yield pk.forces.Ewald(cutoff=1.5, tolerance=1e-2), ions


@pytest.mark.parametrize(("force", "state"), list(forces_that_say_so()))
def test_forces_that_say_that_they_ignore_velocities_do(force, state):
    cache, clock = force.init(state), pk.core.Clock.at(pk.core.StepCount.of(0), 0.0, 0.1)
    assert force.ignores_velocities
    assert not pk.integrators.reads_velocities(force, clock, state, cache)


def test_the_warning_is_right():
    """The order drops to one with VelocityVerlet, and is that of RK4 as the warning advises."""

    def end(integrator, dt):
        sim = pk.Simulation(integrator, dt=dt)
        return float(pk.simulate(sim, ATOM, round(1 / dt)).state.position[0, 0])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhyskitWarning)
        found = [end(VelocityVerlet(SPRING + DRAG), dt) for dt in (0.1, 0.05, 0.025)]
    order = np.log2((found[0] - found[1]) / (found[1] - found[2]))
    assert 0.7 < order < 1.3


def test_dependence_is_that_of_derivatives():
    """Programs with a derivative that is not 0 depend; those that drop the argument do not."""
    x = jnp.arange(3.0)

    def barrier(a, b):
        return jax.lax.optimization_barrier((a, b))[0]

    assert depends_on(lambda a, b: jnp.cumsum(a) @ b, (True, False), x, x)
    assert depends_on(lambda a, b: jnp.where(a > 1, b, 0), (True, False), x, x)
    assert not depends_on(barrier, (False, True), x, x)
    assert depends_on(barrier, (True, False), x, x)
    assert not depends_on(lambda a, b: (b * 2, 1.0), (True, False), x, x)
    assert depends_on(lambda a, b: jax.lax.while_loop(lambda s: s[0] < b[0], lambda s: s + 1, a),
                      (False, True), x, x)  # fmt: skip
