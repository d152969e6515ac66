"""Finite volumes: limiters, reconstruction, and a conservation law of a user's own."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.testing import check_tendency

LIMITERS = [
    pk.limiters.Minmod(),
    pk.limiters.VanLeer(),
    pk.limiters.MonotonizedCentral(),
    pk.limiters.Superbee(),
]
name = lambda x: type(x).__name__


@pytest.mark.parametrize(
    "equations",
    [
        lambda scheme: pk.equations.IncompressibleFlow(0.1, reconstruction=scheme),
        lambda scheme: pk.equations.ScalarTransport(0.1, "heat", reconstruction=scheme),
        lambda scheme: pk.equations.HydrostaticFlow(reconstruction=scheme),
    ],
)
def test_equations_of_averages_refuse_points(equations):
    equations(pk.reconstructions.WENO5())
    with pytest.raises(pk.errors.ParameterError, match="AWENO5 is for values at points"):
        equations(pk.reconstructions.AWENO5())


class InviscidBurgers(pk.equations.AbstractConservationLaw):
    """∂u/∂t + ∇·(½c u²) = 0 along every axis."""

    strength: jax.Array = pk.param(1.0)
    riemann: pk.riemann.AbstractRiemannSolver = pk.riemann.HLL()
    reconstruction: pk.reconstructions.AbstractReconstruction = pk.reconstructions.MUSCL()
    component: str | None = pk.static(default=None)

    def flux(self, values, axis):
        (u,) = values
        return (0.5 * self.strength * u * u,)

    def wave_speeds(self, values, axis):
        (u,) = values
        return self.strength * u, self.strength * u


@pytest.mark.parametrize("limiter", LIMITERS, ids=name)
def test_limiters(limiter):
    a, b = (jnp.asarray(np.random.default_rng(k).normal(size=200)) for k in (0, 1))
    slope = limiter.slope(a, b)
    np.testing.assert_array_equal(slope, limiter.slope(b, a))
    np.testing.assert_array_equal(slope, -limiter.slope(-a, -b))
    np.testing.assert_array_equal(slope[np.asarray(a * b < 0)], 0)
    least = np.minimum(np.abs(a), np.abs(b))
    assert np.all(np.abs(slope) <= 2 * least * (1 + 1e-12))
    assert np.all(
        np.abs(slope)[np.asarray(a * b > 0)] >= least[np.asarray(a * b > 0)] * (1 - 1e-12)
    )
    np.testing.assert_allclose(limiter.slope(a, a), a, rtol=1e-14)
    assert np.isfinite(jax.grad(limiter.slope)(jnp.asarray(0.0), jnp.asarray(0.0)))


@pytest.mark.parametrize(
    ("scheme", "degree"),
    [
        (pk.reconstructions.PiecewiseConstant(), 0),
        (pk.reconstructions.MUSCL(), 1),
        (pk.reconstructions.WENO5(), 2),
    ],
    ids=["0", "1", "2"],
)
def test_polynomials_are_reconstructed_exactly(scheme, degree):
    """Averages of xᵈ give xᵈ at faces, from both sides."""
    faces = np.arange(-3, 8) + 0.5
    averages = jnp.asarray(np.diff(faces ** (degree + 1)) / (degree + 1))
    ghosts = 3 - scheme.width
    padded = averages[ghosts : averages.size - ghosts]
    below, above = scheme.faces(padded, 0)
    inner = faces[3:-3] if degree else np.ones(below.size)
    np.testing.assert_allclose(below, inner**degree, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(above, inner**degree, rtol=1e-11, atol=1e-11)


def test_user_defined_conservation_law():
    grid = pk.Grid(pk.Box([1.0, 1.0], (True, False)), (5, 3))
    u = pk.Field.from_function(
        grid,
        lambda x, y: 1 + 0.3 * jnp.sin(2 * jnp.pi * x + 0.4) + 0.2 * y * y,
        boundary=pk.boundaries.Outflow(),
    )
    # On a line, where the battery's programs are small.
    line = pk.Grid(pk.Box([1.0], False), (5,))
    wave = lambda x: 1 + 0.3 * jnp.sin(2 * jnp.pi * x + 0.4)
    start = pk.Field.from_function(line, wave, boundary=pk.boundaries.Outflow())
    check_tendency(InviscidBurgers(1.3), start)
    rate = InviscidBurgers(1.3).max_signal_rate(_clock(), u)
    np.testing.assert_allclose(rate, 1.3 * jnp.max(u.data) * 8, rtol=1e-12)


@pytest.mark.parametrize("solver", [pk.riemann.HLL(), pk.riemann.Rusanov()], ids=name)
def test_a_shock_moves_at_the_mean_speed_of_both_sides(solver):
    grid = pk.Grid(pk.Box([1.0], False), (64,))
    u = pk.Field.from_function(
        grid, lambda x: jnp.where(x < 0.25, 1.0, 0.0), boundary=pk.boundaries.Outflow()
    )
    sim = pk.Simulation(pk.SSPRK2(InviscidBurgers(riemann=solver)), dt=0.5 / 64)
    end = pk.run(sim, u, 64, progress=False).state
    np.testing.assert_allclose(end.integral(), 0.5, rtol=1e-3)
    assert np.max(np.diff(end.data)) < 1e-12  # monotone


def test_unsupported_riemann_solvers_are_errors():
    grid = pk.Grid([1.0], (8,))
    u = pk.Field.from_function(grid, lambda x: 1 + 0.1 * jnp.sin(x))
    for solver in (pk.riemann.HLLC(), pk.riemann.ExactRiemann()):
        with pytest.raises(
            pk.errors.ParameterError, match=r"needs more than InviscidBurgers.*HLL\(\)"
        ):
            InviscidBurgers(riemann=solver).rate(_clock(), u)
    faces = pk.Field(1.0, grid, grid.face("x"))
    with pytest.raises(pk.errors.ShapeError, match="averages"):
        InviscidBurgers().rate(_clock(), faces)
    with pytest.raises(pk.errors.ShapeError, match="ghost cells"):
        InviscidBurgers().rate(_clock(), pk.Field(1.0, pk.Grid([1.0], (1,))))


def _clock():
    from physkit.core import StepCount

    return pk.components.Clock.at(StepCount.of(0), 0.0, 0.1)


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="its compiler fuses across barriers")
@pytest.mark.parametrize("system", [pk.systems.sod, pk.systems.thacker_bowl])
def test_a_stage_and_its_fluxes_are_computed_once(system):
    """The compiler copies what is read often into its readers: fluxes into cells, a stage into its paddings."""
    simulation, state = system(8)
    program = jax.jit(lambda state: pk.simulate(simulation, state, 1).state).lower(state)

    def size(text):
        return len(re.findall(r"^ +(?:ROOT )?%?[\w.-]+ = ", text, re.MULTILINE))

    # Four and a half to seven times as many, where nothing keeps it from that.
    assert size(program.compile().as_text()) < 4 * size(program.as_text(dialect="hlo"))
