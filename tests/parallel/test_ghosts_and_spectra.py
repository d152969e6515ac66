"""Ghosts, spectra and elliptic solvers over devices, emulated on one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import shard
from physkit.fields import power_spectrum
from physkit.fields.elliptic import project, solve_elliptic, solve_helmholtz, solve_poisson
from physkit.geometry import (
    Box,
    Dirichlet,
    Grid,
    Inflow,
    Mirror,
    Neumann,
    NoSlip,
    Outflow,
)
from physkit.geometry.transforms._transform_plan import AllToAll, plan_transform
from physkit.observe.statistics._flux_spectrum import plane_of
from physkit.parallel import Spmd, trace_collectives
from physkit.simulate.distributed._spmd_function import SpmdFunction

from . import field_cases
from .emulated import noise, run_over

# Many grids and boundaries, on one device and on several.
pytestmark = [pytest.mark.compiled_quickly, pytest.mark.usefixtures("emulated")]


KINDS = [Dirichlet(1.5), Neumann(0.3), Mirror(), Outflow(), NoSlip(0.2), Inflow(2.0)]
ENDS = [(True, True), (False, True), (True, False), (False, False)]
NUMPY_MODES = {Outflow: "edge", Mirror: "symmetric"}


def _pad(comm, field):
    return SpmdFunction(lambda f: f.padded(2))(comm, field)


def _check_ghosts(field, devices):
    whole = np.asarray(field.padded(2))
    found = np.asarray(Spmd(_pad, devices)(shard(field, devices)))
    includes_walls, block = (
        field.grid.includes_walls(field.location),
        (16 // devices[0], 8 // devices[1]),
    )
    for k, (i, j) in enumerate(np.ndindex(*devices)):
        rows = slice(i * block[0], (i + 1) * block[0] + includes_walls[0] + 4)
        columns = slice(j * block[1], (j + 1) * block[1] + includes_walls[1] + 4)
        assert np.array_equal(found[k], whole[:, rows, columns])
    return whole


def _vector(periodic, kind, staggered):
    grid = Grid(Box([1.0, 2.0], periodic=periodic), (16, 8))
    location = pk.spaces.Location(staggered)
    walls = {k: kind for k, wraps in enumerate(periodic) if not wraps} or None
    return pk.Field(noise(2, *grid.local_shape_at(location)), grid, location, walls, vector=True)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_plane_of_points_is_that_of_one_device(axis):
    field = _vector((False, True), KINDS[2], (True, False))[0]
    found = Spmd(SpmdFunction(lambda f: plane_of(f, axis, jnp.int32(5))), (2, 1))(
        shard(field, (2, 1))
    )
    assert np.array_equal(found, np.stack([plane_of(field, axis, jnp.int32(5))] * 2))


@pytest.mark.parametrize(
    ("periodic", "kind", "staggered"),
    [((True, False), KINDS[0], (True, True)), ((False, True), KINDS[4], (False, False))],
)
def test_ghosts_equal_those_of_one_device(periodic, kind, staggered):
    _check_ghosts(_vector(periodic, kind, staggered), (2, 2))


@pytest.mark.slow
@pytest.mark.parametrize("devices", [(1, 1), (2, 1), (1, 2), (2, 2), (4, 1)])
def test_ghosts_equal_those_of_one_device_for_every_boundary(devices):
    for periodic in ENDS:
        for kind in KINDS:
            for staggered in [(False, False), (True, False), (True, True)]:
                _check_ghosts(_vector(periodic, kind, staggered), devices)


@pytest.mark.parametrize("kind", [Outflow(), Mirror()])
def test_ghosts_equal_numpy_padding(kind):
    grid = Grid(Box([1.0, 2.0], periodic=(True, False)), (16, 8))
    field = pk.Field(noise(1, 16, 8), grid, None, {1: kind})
    whole = _check_ghosts(field, (2, 2))
    wrapped = np.pad(np.asarray(field.data), ((0, 0), (2, 2), (0, 0)), mode="wrap")
    assert np.array_equal(
        whole, np.pad(wrapped, ((0, 0), (0, 0), (2, 2)), mode=NUMPY_MODES[type(kind)])
    )


def _transform_and_back(field):
    spectrum = field.spectrum()
    smooth = spectrum.dealiased().laplacian().derivative(0).field()
    return spectrum.field(), smooth, power_spectrum(field).power


def _check_spectra(shape, devices, complex_values):
    grid = Grid(Box([1.0] * len(shape)), shape)
    x = noise(2, *shape)
    field = pk.Field(jax.lax.complex(x, noise(2, *shape, seed=1)) if complex_values else x, grid)
    _, smooth, power = jax.jit(_transform_and_back)(field)
    found = run_over(_transform_and_back, devices, field)
    assert field_cases.distance(field.data, found[0].data) < 1e-14
    assert field_cases.distance(smooth.data, found[1].data) < 1e-13
    assert field_cases.distance(power, found[2]) < 1e-13


@pytest.mark.parametrize(
    ("shape", "devices", "complex_values"),
    [((9, 15), (3, 1), False), ((8, 6, 4), (2, 2), False)],
)
def test_spectra_equal_those_of_one_device(shape, devices, complex_values):
    _check_spectra(shape, devices, complex_values)


@pytest.mark.slow
@pytest.mark.parametrize("complex_values", [False, True])
@pytest.mark.parametrize(
    ("shape", "devices"),
    [
        ((16,), (4,)),
        ((4, 4, 4), (2, 2, 2)),
        *[((16, 8), d) for d in [(2,), (1, 2), (2, 2), (4, 1), (1, 4), (4, 2), (2, 4)]],
        *[((9, 15), d) for d in [(3, 3), (1, 5)]],
        *[((8, 12, 16), d) for d in [(2,), (1, 2), (1, 1, 2), (2, 1, 2), (1, 2, 2), (4, 3, 2)]],
    ],
)
def test_spectra_equal_those_of_one_device_for_every_grid(shape, devices, complex_values):
    _check_spectra(shape, devices, complex_values)


@pytest.mark.parametrize("devices", [(1, 2), pytest.param((4, 2), marks=pytest.mark.slow)])
def test_harmonics_equal_those_of_one_device(devices):
    # 10 orders over devices that do not divide them.
    grid = pk.SphericalGrid(2.0, 9)
    wind = pk.Field(noise(2, *grid.shape), grid)

    def turn(wind):
        grid = wind.grid
        curl, divergence = grid.vorticity_and_divergence(wind.data)
        flow = wind.replace(data=grid.velocity(curl, divergence))
        count = jnp.asarray(grid.mode_multiplicity(), curl.real.dtype)
        energy = grid.psum_modes(jnp.sum(jnp.abs(curl) ** 2 * count))
        return flow, energy, wind.integral(), grid.integrate(grid.latitudes[None, None] * wind.data)

    for one, many in zip(jax.jit(turn)(wind), run_over(turn, devices, wind), strict=True):
        assert field_cases.distance(one, many) < 1e-14


@pytest.mark.parametrize(
    "devices", [(2, 1), (2, 2), pytest.param((1, 2, 2), marks=pytest.mark.slow)]
)
def test_hermitian_symmetrize_makes_values_real(devices):
    """Coefficients that no real values have become those of the real part of their values."""
    shape = (8, 6, 8)[: len(devices)]
    field = pk.Field(noise(*shape), Grid([1.0] * len(shape), shape))

    def symmetrize(field):
        grid = field.grid
        c = grid.fft(field.data)
        perturbed = c + jax.lax.complex(0 * c.real, 1e-2 * jnp.sin(c.real))
        symmetric = grid.hermitian_symmetrize(perturbed)
        values = field.replace(data=grid.ifft(perturbed)), field.replace(data=grid.ifft(symmetric))
        change = grid.fft(values[1].data) - symmetric
        return *values, jnp.sqrt(
            grid.psum_modes(jnp.sum(jnp.abs(change) ** 2 * grid.mode_multiplicity()))
        )

    perturbed, symmetric, change = run_over(symmetrize, devices, field)
    assert field_cases.distance(perturbed.data, symmetric.data) < 1e-13
    assert field_cases.distance(perturbed.data, field.data) > 1e-6
    assert float(change) < 1e-12


def _count_exchanges(shape, devices, kinds=None, real=True):
    plan = plan_transform(shape, devices, kinds or (None,) * len(shape), real)
    return sum(isinstance(step, AllToAll) for step in plan.steps)


def test_plans_have_as_few_exchanges_as_possible():
    """A slab takes one, a pencil two; with devices along every axis it takes one or two more."""
    assert _count_exchanges((16, 16), (4, 1)) == _count_exchanges((16, 16), (1, 4)) == 1
    assert (
        _count_exchanges((16, 16, 16), (4, 1, 1)) == _count_exchanges((16, 16, 16), (1, 1, 4)) == 1
    )
    assert (
        _count_exchanges((16, 16, 16), (2, 2, 1)) == _count_exchanges((16, 16, 16), (1, 2, 2)) == 2
    )
    assert _count_exchanges((16, 16), (2, 2)) == 3
    assert _count_exchanges((16, 16, 16), (2, 2, 2)) == 4
    walls = (("even", "even"), None)
    assert (
        _count_exchanges((16, 16), (4, 1), walls) == _count_exchanges((16, 16), (1, 4), walls) == 1
    )


def test_poisson_solver_exchanges_transpositions_only():
    """On a slab one transposition each way, on a pencil two, and nothing else."""
    grid = Grid([1.0, 1.0, 1.0], (8, 8, 8))
    field = pk.Field(noise(8, 8, 8), grid)
    for devices, each in (((2, 1, 1), 1), ((2, 2, 1), 2)):
        found, _ = trace_collectives(SpmdFunction(solve_poisson), devices, shard(field, devices))
        assert [collective.kind for collective in found] == ["transposition"] * (2 * each)


def _walled(periodic, values=False):
    grid = Grid(Box([1.0, 2.0], periodic=periodic), (16, 8))
    pair = (Dirichlet(0.3), Neumann(0.1))
    along = lambda k: Dirichlet(0.1 * jnp.arange(8.0 if k == 0 else 16.0))
    walls = {k: along(k) if values else pair for k in range(2) if not periodic[k]}
    return pk.Field(noise(16, 8), grid, None, walls or None)


@pytest.mark.parametrize("periodic", [(False, True), (False, False)])
def test_poisson_and_helmholtz_between_walls(periodic):
    solve = lambda f: (solve_poisson(f, f), solve_helmholtz(f, 2.0, f))
    field = _walled(periodic, values=True)
    assert field_cases.distance(jax.jit(solve)(field), run_over(solve, (2, 2), field)) < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("devices", [(2,), (1, 2), (2, 2), (4, 2)])
@pytest.mark.parametrize("periodic", ENDS)
def test_poisson_and_helmholtz_with_all_boundaries(periodic, devices):
    solve = lambda f: (solve_poisson(f, f), solve_helmholtz(f, 2.0, f))
    field = _walled(periodic)
    assert field_cases.distance(solve(field), run_over(solve, devices, field)) < 1e-13


def _flow(periodic):
    grid = Grid(Box([1.0, 2.0], periodic=periodic), (16, 8))
    walls = lambda k: {
        j: Dirichlet(0.0) if j == k else Neumann(0.0) for j in range(2) if not periodic[j]
    }
    make = lambda k: pk.Field(
        noise(*grid.local_shape_at(grid.face(k)), seed=k), grid, grid.face(k), walls(k) or None
    )
    return tuple(make(k).at_time(0.0) for k in range(2))


@pytest.mark.slow
def test_projection_on_a_staggered_grid():
    flow = _flow((True, False))
    assert field_cases.distance(project(flow), run_over(project, (2, 2), flow)) < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("periodic", [(True, True), (False, True)])
@pytest.mark.parametrize("devices", [(2, 1), (2, 2)])
def test_elliptic_equations_with_variable_coefficients(periodic, devices):
    grid = Grid(Box([1.0, 1.0], periodic=periodic), (32, 16))
    walls = {k: (Dirichlet(0.3), Neumann(0.1)) for k in range(2) if not periodic[k]} or None
    source = pk.Field(noise(32, 16), grid, None, walls)
    source = source.replace(data=source.data - source.data.mean())
    a = 1 + 0.5 * jax.random.uniform(jax.random.key(3), (32, 16))
    solve = lambda f, a: solve_elliptic(f, a, 0.0, f)

    def outcome(phi):
        return jnp.sum(jnp.sin(phi.data) * jnp.arange(32.0)[:, None])

    def on_one_device(a, f):
        return outcome(solve(source.replace(data=f), a))

    def over_devices(a, f):
        return outcome(run_over(solve, devices, source.replace(data=f), a))

    arguments = a, source.data
    value, gradients = jax.jit(jax.value_and_grad(on_one_device, (0, 1)))(*arguments)
    found, found_gradients = jax.value_and_grad(over_devices, (0, 1))(*arguments)
    assert abs(value - found) < 1e-10 * abs(value)
    assert field_cases.distance(gradients, found_gradients) < 1e-10
