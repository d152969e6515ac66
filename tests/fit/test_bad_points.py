"""Points where naive formulas make 0 · ∞ = NaN: derivatives by everything are finite there."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, StepCount

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_derivatives_are_finite[HLL, still gas]",
    "test_derivatives_are_finite[ExactRiemann, still gas]",
    "test_derivatives_are_finite[Minmod]",
    "test_derivatives_are_finite[Superbee]",
    "test_derivatives_are_finite[bond of no length]",
    "test_derivatives_are_finite[mesh of nothing]",
)

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
NONE = jnp.zeros(4)
ONES = jnp.ones(4)
BOX = lambda lengths: pk.Grid(pk.Box(lengths), (8,) * len(lengths))
STACKED = pk.Particles(jnp.zeros((3, 3)), charge=jnp.ones(3))


def _flux(solver):
    law = pk.equations.CompressibleEuler(1.4)
    return lambda law, x: solver.flux(law, x, x, 0), (law, (ONES, NONE, ONES))


def _dry(solver):
    return lambda law, x: solver.flux(law, x, x, 0), (
        pk.equations.ShallowWaterFV(1.0),
        (NONE, NONE),
    )


def _force(make, particles=STACKED):
    return lambda force, p: force(CLOCK, p, force.init(p))[0], (make, particles)


def _one_step(integrator, state):
    sim = pk.Simulation(integrator, dt=0.1, guards=())
    return lambda sim, s: pk.simulate(sim, s, 1, key=jax.random.key(0)).state, (sim, state)


FLAT = lambda n=1: pk.Field(jnp.zeros((8,) * n), BOX([1.0] * n))
TRAP = lambda: pk.HarmonicTrap(1.0)
POINTS = {
    **{type(s).__name__ + ", still gas": lambda s=s: _flux(s) for s in (
        pk.riemann.HLL(), pk.riemann.HLLC(), pk.riemann.Rusanov(), pk.riemann.ExactRiemann())},
    **{type(s).__name__ + ", dry land": lambda s=s: _dry(s) for s in (pk.riemann.HLL(), pk.riemann.HLLC())},
    **{type(m).__name__: lambda m=m: (lambda m, x: m.slope(x, x), (m, NONE)) for m in (
        pk.limiters.Minmod(), pk.limiters.VanLeer(), pk.limiters.MonotonizedCentral(), pk.limiters.Superbee())},
    "norm of nothing": lambda: (lambda u: u.norm(), (FLAT(),)),
    "spectrum of nothing": lambda: (lambda u: pk.statistics.power_spectrum(u).power, (FLAT(2),)),
    "bond of no length": lambda: _force(pk.HarmonicBonds([[0, 1]], 1.0, 0.5)),
    "angle of no arms": lambda: _force(pk.HarmonicAngles([[0, 1, 2]], 1.0, 0.5)),
    "gravity on one spot": lambda: _force(pk.DirectGravity(1.0, 0.1)),
    "mesh of nothing": lambda: _force(
        pk.ParticleMesh(BOX([1.0, 1.0])),
        pk.Particles(jnp.full((2, 2), 0.25), charge=jnp.zeros(2), space=pk.Box([1.0, 1.0]))),
    "cold bath": lambda: _one_step(pk.BAOAB(TRAP(), 0.0, 0.0), STACKED),
    "wave at rest": lambda: _one_step(
        pk.integrators.ExactWave(pk.equations.Wave(1.0)), {"displacement": FLAT(), "velocity": FLAT()}),
    "vortices at rest": lambda: _one_step(pk.ETDRK4(pk.equations.VorticityTransport(0.1)), FLAT(2)),
    "Poisson without source": lambda: (lambda u: pk.elliptic.solve_poisson(u), (FLAT(2),)),
    "temperature at rest": lambda: (lambda p: pk.particles.temperature(p), (STACKED,)),
}  # fmt: skip


@pytest.mark.parametrize("name", POINTS)
def test_derivatives_are_finite(name):
    function, at = POINTS[name]()
    floating, rest = eqx.partition(at, eqx.is_inexact_array)

    @jax.jit
    def value(floating):
        out = function(*eqx.combine(floating, rest))
        floats = [x for x in jax.tree.leaves(out) if eqx.is_inexact_array(x)]
        real = lambda x: x.real + x.imag if jnp.iscomplexobj(x) else x
        return sum(jnp.sum(jnp.sin(real(x) + 1)) for x in floats)

    for path, x in jax.tree_util.tree_leaves_with_path(jax.grad(value)(floating)):
        assert np.all(np.isfinite(x)), jax.tree_util.keystr(path)
