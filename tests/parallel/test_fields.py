"""Fields over devices, emulated on one: ghosts, spectra, elliptic solvers, equations, collectives, errors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ShapeError, shard, unshard
from physkit.fields import power_spectrum
from physkit.fields.elliptic import project, solve_elliptic, solve_helmholtz, solve_poisson
from physkit.fields.operators import Central, laplacian
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
from physkit.integrators import SSPRK3
from physkit.parallel import Spmd, trace_collectives
from physkit.simulate.distributed._spmd_function import SpmdFunction
from physkit.testing import check_devices

from . import field_cases

# Fifty systems, each with its gradient, on one device and on several.
pytestmark = pytest.mark.compiled_quickly

# Emulated by `vmap` they have no derivative: see `substeps.py`.
SUBSTEPS = ["sedov", "sedov in the plane", "sedov in space", "viscous_shear"]


@pytest.fixture(autouse=True)
def _emulated(monkeypatch):
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")


def run_over(function, devices, *arguments):
    """Run a function of Modules over devices; return its result for the whole domain."""
    return unshard(Spmd(SpmdFunction(function), devices)(*shard(arguments, devices)), devices)


def noise(*shape, seed=0):
    return jax.random.normal(jax.random.key(seed), shape)


# --- ghosts -------------------------------------------------------------------------------------

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


# --- spectra ------------------------------------------------------------------------------------


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


# --- elliptic equations -------------------------------------------------------------------------


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


# --- equations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "devices", "tolerance"),
    [
        pytest.param("kuramoto_sivashinsky", (2,), 1e-13, marks=pytest.mark.slow),
        pytest.param("disks_in_slabs", (4,), 1e-13, marks=pytest.mark.slow),
        # Two cells wide, it stops turning within the run: what is left is a small difference.
        pytest.param("settling_disk", (2, 2), 1e-11, marks=pytest.mark.slow),
        # The fast suite has another system on as many, in single precision.
        pytest.param("gravity_waves", (2, 2), 1e-13, marks=pytest.mark.slow),
    ],
)
def test_systems_equal_those_of_one_device(name, devices, tolerance):
    case = field_cases.SYSTEMS[name][0]
    for one, many in zip(
        field_cases.on_one_device(case), field_cases.over_devices(case, devices), strict=True
    ):
        assert field_cases.distance(one, many) < tolerance


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in field_cases.SYSTEMS if n not in SUBSTEPS])
def test_every_system_passes_check_devices(name):
    case, grids = field_cases.SYSTEMS[name]
    sim, state, steps = case()
    # A disk two cells wide: friction is solved for beside its surface, which makes rounding ten times as large.
    compare = "solve" if name == "settling_disk" else "sum"
    grids = field_cases.GRADIENT_GRIDS[len(grids)]
    check_devices(sim, state, steps, devices=grids, compare=compare)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBSTEPS)
def test_systems_with_substeps_pass_check_devices(name):
    found = json.loads(_run_module("substeps", "pmap", name).splitlines()[-1])
    assert found == [name]


@pytest.mark.slow
def test_noise_on_fields_is_the_same_over_devices():
    sim, start, steps = field_cases.phases_between_walls()
    noise = pk.equations.WhiteNoise(0.1, conserved=True)
    law = pk.equations.CahnHilliard(scheme=pk.schemes.Central())
    sim = pk.Simulation(pk.RK4(law, noise), dt=0.01)
    one = jax.jit(lambda s: pk.simulate(sim, s, steps, key=1).state.data)(start)
    many = pk.simulate(sim, start, steps, key=1, devices=(2, 2)).state.data
    assert float(jnp.max(abs(one - start.data))) > 1e-3
    # Numbers are drawn in single precision, and compiled quickly their logarithms may round otherwise.
    assert field_cases.distance(one, many) < 1e-7


def test_single_precision_is_kept_over_devices():
    sim, state, steps = field_cases.SYSTEMS["gray_scott"][0]()
    single = pk.Field(state.data.astype(jnp.float32), state.grid)
    one = jax.jit(lambda s: pk.simulate(sim, s, steps).state.data)(single)
    many = pk.simulate(sim, single, steps, devices=(2, 2)).state.data
    assert many.dtype == jnp.float32
    assert field_cases.distance(one, many) < 2e-6


class LocalMean(pk.AbstractTendency):
    """A term that is wrong on several devices: the mean over what one device holds."""

    def rate(self, clock, state):
        del clock
        return state.map(lambda x: jnp.mean(x) - x)


class DomainMean(pk.AbstractTendency):
    """The same with the mean over the domain, and a stencil that reads neighbors."""

    strength: jax.Array = pk.param(0.01)

    def rate(self, clock, state):
        del clock
        return laplacian(state, Central(2)) * self.strength + state.map(lambda x: state.mean() - x)


def test_check_devices_finds_means_over_a_block():
    state = pk.Field(noise(8), Grid([1.0], (8,)))
    sims = [pk.Simulation(SSPRK3(term), dt=0.1) for term in (LocalMean(), DomainMean())]
    with pytest.raises(AssertionError, match="over 2 devices against one"):
        check_devices(sims[0], state, 2, gradient=False)
    check_devices(sims[1], state, 2, gradient=False)
    observed = pk.Simulation(
        SSPRK3(DomainMean()), dt=0.1, observers=pk.Every(1, most=lambda now: now.state.data.max())
    )
    with pytest.raises(AssertionError, match="'most' is computed from each device's part"):
        check_devices(observed, state, 2, gradient=False)


@pytest.mark.slow
def test_a_mean_over_the_domain_has_its_derivative_over_devices():
    sim = pk.Simulation(SSPRK3(DomainMean()), dt=0.1)
    check_devices(sim, pk.Field(noise(8), Grid([1.0], (8,))), 2)


@pytest.mark.parametrize("is_global", [True, False])
def test_means_over_a_block_are_nan_inside_a_trace(is_global):
    """A trace cannot raise: the frame and its derivative are NaN, and `health` has the fault."""
    state = pk.Field(noise(8), Grid([1.0], (8,)))

    def square(u):
        # Where a device is does not count as a part of the state: only its numbers tell.
        return (u * u).mean() * (1.0 if is_global else jnp.mean(u.grid.coordinates()[0]))

    observer = pk.Every(1, square=lambda now: square(now.state))

    def outcome(strength, devices):
        sim = pk.Simulation(SSPRK3(DomainMean(strength)), dt=0.1, observers=observer)
        done = pk.simulate(sim, state, 2, devices=devices)
        return jnp.sum(done.frames["square"]), done.health

    (value, health), gradient = jax.value_and_grad(outcome, has_aux=True)(0.01, (2,))
    if is_global:
        health.check()
        (one, _), gradient_of_one = jax.value_and_grad(outcome, has_aux=True)(0.01, None)
        assert abs(value - one) < 1e-13
        assert abs(gradient - gradient_of_one) < 1e-10
    else:
        assert jnp.isnan(value)
        assert jnp.isnan(gradient)
        with pytest.raises(pk.errors.ObserverError, match="differs from device to device"):
            health.check()


@pytest.mark.slow
def test_adaptive_steps_are_the_same_on_all_devices():
    """A field that is rough on one device alone makes all devices take short inner steps."""
    diffrax = pytest.importorskip("diffrax")
    grid = Grid([1.0, 1.0], (8, 8))
    state = pk.Field(jnp.where(jnp.arange(8.0)[:, None] < 3, noise(8, 8), 0.0), grid)
    heat = pk.equations.Diffusion(0.1, scheme=Central(2))
    sim = pk.Simulation(pk.Diffrax(diffrax.Tsit5(), heat), dt=0.01)
    one = jax.jit(lambda s: pk.simulate(sim, s, 2).state)(state)
    assert field_cases.distance(one, pk.simulate(sim, state, 2, devices=(2, 2)).state) < 1e-12
    stiff = pk.Simulation(pk.Diffrax(diffrax.Kvaerno3(), heat), dt=0.01)
    with pytest.raises(pk.errors.DeclarationError, match="Kvaerno3 is implicit"):
        pk.simulate(stiff, state, 2, devices=(2, 2))
    checkpoints = diffrax.RecursiveCheckpointAdjoint()
    checkpointed = pk.Simulation(pk.Diffrax(diffrax.Tsit5(), heat, adjoint=checkpoints), dt=0.01)
    with pytest.raises(pk.errors.DeclarationError, match=r"adjoint=diffrax\.DirectAdjoint"):
        pk.simulate(checkpointed, state, 2, devices=(2, 2))


@pytest.mark.slow
def test_substeps_are_as_many_on_all_devices():
    """The fastest wave is on one device alone; the length of sub-steps is that of all."""
    sim, state = pk.systems.sedov(16)
    one = jax.jit(lambda s: pk.simulate(sim, s, 2).state)(state)
    assert field_cases.distance(one, pk.simulate(sim, state, 2, devices=2).state) < 1e-12


@pytest.mark.slow
def test_derivatives_of_adaptive_steps_equal_those_of_one_device():
    diffrax = pytest.importorskip("diffrax")
    state = pk.Field(noise(8), Grid([1.0], (8,)))

    def outcome(diffusivity, devices):
        heat = pk.equations.Diffusion(diffusivity, scheme=Central(2))
        sim = pk.Simulation(pk.Diffrax(diffrax.Tsit5(), heat, max_steps=32), dt=0.01)
        return jnp.sum(pk.simulate(sim, state, 2, devices=devices).state.data ** 2)

    gradient = jax.grad(outcome)
    assert abs(gradient(0.1, (2,)) - gradient(0.1, None)) < 1e-10


# --- errors -------------------------------------------------------------------------------------


def test_grids_that_devices_do_not_divide_raise():
    sim, state = pk.systems.gray_scott(cells=(15, 8))
    with pytest.raises(ShapeError, match=r"15 cells along x cannot be cut into 2 equal blocks.*3"):
        pk.simulate(sim, state, sim.observation_period, devices=(2, 2))
    with pytest.raises(ShapeError, match="cuts 3 axes; the grid of"):
        pk.simulate(sim, state, sim.observation_period, devices=(1, 1, 2))


def test_blocks_thinner_than_their_ghosts_raise():
    grid = Grid([1.0, 1.0], (8, 8))
    field = pk.Field(noise(8, 8), grid)
    with pytest.raises(
        ShapeError, match=r"3 ghost cells along x, where each of 4 devices.*at most 2"
    ):
        run_over(lambda f: f.replace(data=f.padded(3)), (4, 1), field)


# --- programs for real devices ------------------------------------------------------------------

ROOT = Path(__file__).parents[2]


def _run_module(module: str, *arguments: str) -> str:
    """Run a module with eight emulated devices, which only a new process can have; return its output."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "1",
        "PHYSKIT_TYPECHECK": "0",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8",
        "NPROC": "16",  # threads: devices that wait for one another need one each
    }
    command = [sys.executable, "-m", f"tests.parallel.{module}", *arguments]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["pmap", "shard_map"])
def test_backends_of_real_devices(backend):
    """Collectives of a spectral and of a local program, and a run that changes devices."""
    found = json.loads(_run_module("real_devices", backend).splitlines()[-1])
    assert found["poisson"] == {"all-to-all": 4}
    assert found["gray_scott"] == {"collective-permute": 8}
    assert found["devices"] == 1  # no program over devices puts a domain together, on any of them
    assert found["difference"] < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["pmap", "shard_map"])
def test_compiled_programs_gather_nothing(backend):
    """They exchange neighbors' cells, sums and transpositions, and no more of them than needed."""
    names = "gray_scott,gravity_waves,kolmogorov_flow,kuramoto_sivashinsky,stommel_gyre"
    found = json.loads(_run_module("compiled_collectives", backend, names).splitlines()[-1])
    assert len(found) == 9
    assert not any(ops.get("all-gather", 0) for ops in found.values()), found
    count = lambda name: found[f"{name}, {backend}"].get("all-to-all", 0)
    assert [count(f"poisson {d}") for d in [(2, 1, 1), (2, 2, 1), (2, 2, 2)]] == [2, 4, 8]
    # Two in each of four stages of a step, three times as many where both axes are cut; the others are of a
    # start, of the steady forcing, of an observation, and of the check that dt resolves what the step does.
    assert count("kolmogorov_flow (2, 1)") == 17
    assert count("kolmogorov_flow (2, 2)") == 51
    assert count("gray_scott (2, 2)") == count("stommel_gyre (2, 2)") == 0


@pytest.mark.slow
def test_every_adjoint_equals_that_of_one_device():
    found = json.loads(_run_module("adjoints", "pmap").splitlines()[-1])
    assert len(found) == 5
    assert max(found.values()) < 1e-10, found


def test_forward_adjoint_counts_replicated_parameters_once():
    """A perturbation of the domain is one tangent, not one for every device."""
    state = pk.Field(noise(4), Grid([1.0], (4,)))

    def outcome(at, devices):
        factors, diffusivity = at
        heat = pk.equations.Diffusion(diffusivity, scheme=Central(2))
        sim = pk.Simulation(pk.Euler(heat), dt=0.01, adjoint=pk.adjoints.Forward())
        start = state.map(lambda x: x * factors)
        return jnp.sum(pk.simulate(sim, start, 2, devices=devices).state.data ** 2)

    gradient = jax.jit(jax.grad(outcome), static_argnums=1)
    at = (jnp.asarray([1.5, 0.5, 1.0, 2.0]), jnp.asarray(0.1))
    one, many = (gradient(at, devices) for devices in (None, (2,)))
    assert field_cases.distance(one, many) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["pmap", "shard_map"])
def test_a_sample_of_the_matrix_equals_one_device(backend, tmp_path):
    """A few systems on emulated devices; `matrix.py` runs all."""
    table = tmp_path / "matrix.jsonl"
    names = "kuramoto_sivashinsky,gray_scott,gravity_waves"
    _run_module("matrix", str(table), backend, names)
    for line in table.read_text().splitlines():
        row = json.loads(line)
        assert max(row["differences"]) < 1e-13, row
