"""Equations over devices, emulated on one: systems, noise, means, adaptive steps, adjoints, errors."""

import jax
import jax.numpy as jnp
import pytest

import physkit as pk
from physkit.core import ShapeError
from physkit.fields.operators import Central, laplacian
from physkit.geometry import (
    Grid,
)
from physkit.integrators import SSPRK3
from physkit.testing import check_devices

from . import field_cases
from .emulated import SUBSTEPS, noise, run_over

# Fifty systems, each with its gradient, on one device and on several.
pytestmark = [pytest.mark.compiled_quickly, pytest.mark.usefixtures("emulated")]


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


def test_check_devices_takes_no_nan_for_a_derivative():
    sim = pk.Simulation(SSPRK3(DomainMean()), dt=0.1)
    root_of_zero = lambda state: jnp.sqrt(jnp.sum(0 * state.data))
    with pytest.raises(AssertionError, match=r"the derivatives on one device: .* is not finite"):
        check_devices(sim, pk.Field(noise(8), Grid([1.0], (8,))), 1, objective=root_of_zero)


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
