"""Incompressible flow, by vorticity and by velocity: what is conserved, exact flows, bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Clock, ParameterError, ShapeError, StepCount
from physkit.fields import Field
from physkit.fields.equations import (
    KolmogorovForcing,
    NavierStokes,
    VorticityTransport,
    project_solenoidal,
    velocity_from_vorticity,
    vorticity,
)
from physkit.fields.operators import Spectral, curl, divergence
from physkit.geometry import Box, Dirichlet, Grid, Mirror
from physkit.integrators import ETDRK2, ETDRK4, RK4
from physkit.simulate import Simulation, init, simulate
from physkit.testing import check_tendency

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_modes_on_the_edge_of_the_sphere_are_left_out_in_every_direction",
    "test_vorticity_and_velocity_are_inverse",
    "test_battery_of_the_velocity[equation0]",
    "test_flows_between_walls_are_said_to_be_missing",
)

TWO_PI = 2 * np.pi


def plane(n=16):
    return Grid([TWO_PI, TWO_PI], (n, n))


def cube(n=12):
    return Grid([TWO_PI, TWO_PI, TWO_PI], (n, n, n))


def noise(grid, *components, seed=0):
    """A smooth field of waves |n| ≤ 3 with random phases."""
    key = jax.random.key(seed)
    values = jax.random.normal(key, (*components, *grid.shape))
    field = Field(values, grid, vector=bool(components))
    low = [abs(n) <= 3 for n in grid.modes()]
    mask = low[0]
    for along_axis in low[1:]:
        mask = mask & along_axis
    return field.spectrum().multiply(jnp.asarray(mask)).field().with_boundary(field)


def rate(equation, field):
    clock = Clock.at(StepCount.of(0), 0.0, 0.1)
    return equation.nonlinear(clock, field).field()


def flow(grid, seed=0):
    """A smooth velocity of mean 0 without divergence."""
    v = project_solenoidal(noise(grid, grid.dimension, seed=seed))
    return v.map(
        lambda x: x - jnp.mean(x, axis=tuple(range(1, x.ndim)), keepdims=True)
    ).with_boundary(None)


@pytest.fixture(params=["plane", "cube"])
def grid(request):
    return plane() if request.param == "plane" else cube()


def test_vorticity_and_velocity_are_inverse():
    w = noise(plane())
    w = w - w.mean()
    v = velocity_from_vorticity(w)
    assert v.vector
    np.testing.assert_allclose(vorticity(v).data, w.data, atol=1e-14)
    np.testing.assert_allclose(curl(v, Spectral()).data, w.data, atol=1e-13)
    np.testing.assert_allclose(divergence(v, Spectral()).data, 0, atol=1e-13)


def test_basdevants_form_is_the_advection_of_vorticity():
    """Basdevant's form is −u·∇ω, for waves whose product the grid resolves."""
    w = noise(plane(32))
    v = velocity_from_vorticity(w)
    spectrum = w.spectrum()
    expected = -(
        v.data[0] * spectrum.derivative(0).field().data
        + v.data[1] * spectrum.derivative(1).field().data
    )
    np.testing.assert_allclose(rate(VorticityTransport(0.1), w).data, expected, atol=1e-13)


def test_velocity_and_vorticity_forms_agree():
    v = flow(plane())
    by_velocity = rate(NavierStokes(0.1), v)
    by_vorticity = rate(VorticityTransport(0.1), vorticity(v))
    np.testing.assert_allclose(vorticity(by_velocity).data, by_vorticity.data, atol=1e-13)


def test_velocity_rate_is_the_solenoidal_part_of_u_cross_vorticity():
    """−∇·(uu) − ∇p is the part without divergence of u × ω."""
    grid = cube(16)
    v = flow(grid)
    w = curl(v, Spectral())
    cross = jnp.stack([jnp.cross(v.data, w.data, axis=0)[i] for i in range(3)])
    expected = project_solenoidal(v.map(lambda _: cross)).spectrum().dealiased().field()
    np.testing.assert_allclose(rate(NavierStokes(0.1), v).data, expected.data, atol=1e-12)


def test_spherical_truncation_keeps_more_modes():
    """Smooth flows move alike under both truncations; the sphere keeps modes the cube leaves out."""
    v = flow(cube(16))
    low = rate(NavierStokes(0.1), v).spectrum().coefficients
    high = rate(NavierStokes(0.1, truncation="sphere"), v).spectrum().coefficients
    nx, ny, nz = v.grid.modes()
    sphere = nx**2 + ny**2 + nz**2 < 2 / 9 * 16**2
    kept = np.asarray(v.grid.dealias_mask())
    both = kept & sphere
    np.testing.assert_allclose(np.asarray(high)[:, both], np.asarray(low)[:, both], atol=1e-10)
    beyond = np.max(np.abs(np.asarray(high)[:, sphere & ~kept]))
    assert beyond > 1.0
    with pytest.raises(ParameterError, match="'cube' or 'sphere'"):
        NavierStokes(0.1, truncation="square")


def test_modes_on_the_edge_of_the_sphere_are_left_out_in_every_direction():
    """Of 21 points (3, 5, 8) is on the edge; as sums of fractions some of its directions are inside."""
    grid = cube(21)
    kept = np.asarray(NavierStokes(0.1, truncation="sphere")._kept_modes(grid))
    n = [np.asarray(x, np.int64) for x in grid.modes()]
    np.testing.assert_array_equal(kept, 9 * (n[0] ** 2 + n[1] ** 2 + n[2] ** 2) < 2 * 21**2)


def test_energy_and_enstrophy_are_conserved_without_viscosity(grid):
    """The truncated equations conserve energy (and enstrophy in the plane) to rounding."""
    v = project_solenoidal(
        Field(
            jax.random.normal(jax.random.key(1), (grid.dimension, *grid.shape)), grid, vector=True
        )
    )
    v = v.spectrum().dealiased().field()  # all modes that are kept
    change = rate(NavierStokes(0.0), v).data
    power = np.sum(np.asarray(v.data) * np.asarray(change))
    size = np.sqrt(np.sum(np.asarray(v.data) ** 2) * np.sum(np.asarray(change) ** 2))
    assert size > 0.1
    assert abs(power) < 1e-13 * size
    if grid.dimension == 2:
        w = vorticity(v)
        change = np.asarray(rate(VorticityTransport(0.0), w).data)
        size = np.sqrt(np.sum(np.asarray(w.data) ** 2) * np.sum(change**2))
        assert abs(np.sum(np.asarray(w.data) * change)) < 1e-13 * size  # enstrophy
        u = velocity_from_vorticity(w.map(lambda _: jnp.asarray(change)))
        assert abs(np.sum(np.asarray(v.data) * np.asarray(u.data))) < 1e-13 * size  # energy


def test_conservation_in_time_falls_with_the_step():
    """What the time step of RK4 loses of energy and enstrophy falls with its fifth power."""
    w = noise(plane()) * 8.0

    def change_of_invariants(steps):
        end = simulate(Simulation(RK4(VorticityTransport(0.0)), dt=0.4 / steps), w, steps).state
        energy = lambda f: (velocity_from_vorticity(f) ** 2).norm(1)
        return np.array([energy(end) - energy(w), (end**2).norm(1) - (w**2).norm(1)])

    errors = [np.abs(change_of_invariants(n)) for n in (10, 20, 40)]
    slopes = np.log2(errors[0] / errors[2]) / 2
    assert np.all(slopes > 4.5), (slopes, errors)


def test_divergence_stays_zero(grid):
    v = flow(grid)
    end = simulate(Simulation(ETDRK2(NavierStokes(0.01)), dt=0.01), v, 50).state
    assert float(jnp.max(jnp.abs(end.data - v.data))) > 0.05
    assert float(jnp.max(jnp.abs(divergence(end, Spectral()).data))) < 1e-12


@pytest.mark.parametrize("scheme", [ETDRK2, ETDRK4])
def test_taylor_green_decays_exactly(scheme):
    nu, k = 0.05, 2
    w = Field.from_function(plane(), lambda x, y: jnp.cos(k * x) * jnp.cos(k * y))
    end = simulate(Simulation(scheme(VorticityTransport(nu)), dt=0.05), w, 40).state
    expected = np.exp(-2 * nu * k**2 * 2.0) * np.asarray(w.data)
    np.testing.assert_allclose(end.data, expected, atol=1e-14)


def test_kolmogorov_flow_is_laminar_and_steady():
    nu, chi, n = 0.3, 0.2, 2
    force = KolmogorovForcing(chi, wavenumber=n)
    grid = Grid([3.0, 5.0], (8, 16))
    kappa = TWO_PI * n / 5.0
    speed = chi / (nu * kappa**2)
    zero = Field(0.0, grid, vector=True)
    end = simulate(Simulation(ETDRK4(NavierStokes(nu), force), dt=0.5), zero, 60).state
    y = np.asarray(grid.coordinates()[1])
    expected = np.broadcast_to(speed * np.sin(kappa * y), grid.shape)
    np.testing.assert_allclose(end.data[0], expected, atol=1e-10)
    np.testing.assert_allclose(end.data[1], 0, atol=1e-12)
    zero = Field(0.0, grid)
    end = simulate(Simulation(ETDRK4(VorticityTransport(nu), force), dt=0.5), zero, 60).state
    expected = np.broadcast_to(-speed * kappa * np.cos(kappa * y), grid.shape)
    np.testing.assert_allclose(end.data, expected, atol=1e-10)


def test_drag_damps_vorticity():
    w = noise(plane())
    end = simulate(Simulation(ETDRK4(VorticityTransport(0.0, 0.7)), dt=0.1), w * 1e-6, 10).state
    np.testing.assert_allclose(end.data, np.exp(-0.7) * 1e-6 * np.asarray(w.data), atol=1e-11)


@pytest.mark.parametrize("equation", [VorticityTransport(0.1, 0.05), KolmogorovForcing(0.3, 2)])
def test_battery_of_the_vorticity(equation):
    check_tendency(equation, noise(plane(12)))


@pytest.mark.parametrize("equation", [NavierStokes(0.1), KolmogorovForcing(0.3, 2)])
def test_battery_of_the_velocity(equation):
    check_tendency(equation, flow(plane(12)))


def test_battery_in_three_dimensions():
    state = {"u": flow(cube(8)), "other": Field(1.0, cube(8))}
    check_tendency(NavierStokes(0.1, component="u"), state, drives=["u"])


@pytest.mark.slow
def test_a_divergence_of_the_start_is_taken_out():
    """By the first step already, as at the start of every later run: over devices, and after a resume."""
    grid = Grid([1.0, 1.7], (8, 8))
    start = Field(np.random.default_rng(0).standard_normal((2, 8, 8)), grid, vector=True)
    sim = Simulation(ETDRK4(NavierStokes(0.01)), dt=1e-3)
    rough, smooth = (simulate(sim, u, 2).state for u in (start, project_solenoidal(start)))
    np.testing.assert_allclose(rough.data, smooth.data, atol=1e-13)


def test_bad_input_is_an_error():
    clock = Clock.at(StepCount.of(0), 0.0, 0.1)
    with pytest.raises(ShapeError, match="real scalar field on a grid with two axes"):
        VorticityTransport(0.1).symbol(flow(plane()))
    with pytest.raises(ShapeError, match="advance the velocity: NavierStokes"):
        VorticityTransport(0.1).symbol(noise(cube()))
    with pytest.raises(ShapeError, match="vector=True"):
        NavierStokes(0.1).nonlinear(clock, noise(plane()))
    with pytest.raises(ShapeError, match="vector field on a grid with two axes"):
        vorticity(flow(cube()))
    walls = Grid(Box([1.0, 1.0], periodic=(True, False)), (8, 8))
    with pytest.raises(ParameterError, match="walls along y"):
        ETDRK2(VorticityTransport(0.1)).prepare(
            Field(0.0, walls, boundary={"y": Dirichlet(0.0)}), 0.1
        )
    with pytest.raises(ParameterError, match="whole number"):
        KolmogorovForcing(1.0, 0)
    with pytest.raises(ShapeError, match="what is driven"):
        KolmogorovForcing(1.0).rate(clock, noise(cube()))


@pytest.mark.parametrize("law", [NavierStokes(0.1), VorticityTransport(0.1)])
def test_flows_between_walls_are_said_to_be_missing(law):
    channel = Grid(Box([1.0, 1.0], (True, False)), (8, 8))
    flow = Field(0.0, channel, None, Mirror(), vector=isinstance(law, NavierStokes))
    for integrator in (ETDRK2(law), RK4(law)):
        with pytest.raises(
            ParameterError, match=r"walls along y\..*IncompressibleFlow moves a FlowState"
        ):
            init(Simulation(integrator, dt=0.1), flow)
