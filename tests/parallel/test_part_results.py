"""Plain functions that sum a device's part of the domain are refused, whatever their numbers are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.geometry import Box, Grid
from physkit.particles import Particles
from physkit.simulate.distributed._domain import DistributedDomain

pytestmark = pytest.mark.usefixtures("emulated")

N = 8


def dust():
    """Particles at rest: any sum of their velocities is 0 on every device."""
    x = (np.arange(N) + 0.5) / N
    return Particles(np.stack([x, x], 1), mass=1.0, space=Box([1.0, 1.0]))


def wave():
    """A field that repeats itself: every sum over a half is that over the other."""
    return pk.Field(jnp.tile(jnp.arange(4.0), 2), Grid([1.0], (N,)))


def observe_dust(**functions):
    trap = pk.forces.HarmonicTrap(1.0, [0.5, 0.5])
    observers = pk.Every(1, **functions)
    return pk.Simulation(pk.VelocityVerlet(trap), 0.01, observers=observers), dust()


def observe_wave(**functions):
    heat = pk.equations.Diffusion(0.1, scheme=pk.schemes.Central(2))
    return pk.Simulation(pk.Euler(heat), 1e-3, observers=pk.Every(1, **functions)), wave()


def first_frame(sim, state):
    done = pk.run(sim, state, 1, devices=2, progress=False)
    return {name: done[name][0] for name in done.frames}


def check(sim, state):
    """What a run does before its first frame."""
    domain = DistributedDomain(sim, 2)
    domain.frame_shapes(domain.init(state))


@pytest.mark.parametrize(
    "part",
    [
        lambda now: now.state.velocity.mean(0),
        lambda now: {"mass": jnp.sum(now.state.mass)},
        lambda now: jax.lax.fori_loop(0, 2, lambda i, x: x + now.state.mass[i], 0.0),
    ],
)
def test_sums_over_the_particles_of_a_device_are_refused(part):
    with pytest.raises(pk.errors.ObserverError, match=r"'v.*' is computed from each device's part"):
        check(*observe_dust(t=lambda now: now.t, v=part))


@pytest.mark.parametrize(
    "part",
    [
        lambda now: now.state.data.sum(),
        lambda now: now.state.mean() + jax.jit(jnp.max)(now.state.data),
        lambda now: now.state.data[0],
    ],
)
def test_sums_over_the_block_of_a_device_are_refused(part):
    with pytest.raises(pk.errors.ObserverError, match=r"'v' is computed .* field.mean\(\)"):
        check(*observe_wave(t=lambda now: now.t, v=part))


def test_a_run_refuses_what_is_the_same_wrong_number_on_all_devices():
    with pytest.raises(pk.errors.ObserverError, match="'v' is computed from each device's part"):
        first_frame(*observe_wave(v=lambda now: now.state.data.sum()))


def test_what_belongs_to_the_domain_of_particles_is_recorded():
    frame = first_frame(
        *observe_dust(
            mean=lambda now: now.state.sum(now.state.velocity) / now.state.num_particles,
            middle=lambda now: now.state.all_rows(now.state.position).mean(0),
            rows=lambda now: now.state.all_rows(now.state.position),
            quantity=lambda now: pk.quantities.PotentialEnergy()(now),
            box=lambda now: now.state.space.lengths,
            shape=lambda now: jnp.ones_like(now.state.mass).shape[0],
            t=lambda now: now.t,
        )
    )
    np.testing.assert_allclose(frame["mean"], np.zeros(2), atol=1e-15)
    np.testing.assert_allclose(frame["middle"], np.full(2, 0.5))
    np.testing.assert_allclose(frame["rows"], dust().position)
    np.testing.assert_allclose(frame["box"], np.ones(2))
    assert frame["quantity"] > 0
    assert frame["t"] == 0


def test_what_belongs_to_the_domain_of_a_field_is_recorded():
    frame = first_frame(
        *observe_wave(
            mean=lambda now: now.state.mean(),
            max=lambda now: now.state.max(),
            total=lambda now: now.state.integral(),
            sum=lambda now: now.state.grid.sum(now.state.data),
            double=lambda now: now.state.data * 2,
            field=lambda now: now.state,
            modes=lambda now: jnp.abs(now.state.spectrum().coefficients),
            step=lambda now: now.clock.dt,
        )
    )
    u = wave().data
    for name, expected in {
        "mean": 1.5, "max": 3.0, "total": 1.5, "sum": 12.0, "double": 2 * u, "step": 1e-3,
    }.items():  # fmt: skip
        np.testing.assert_allclose(frame[name], expected, err_msg=name)
    np.testing.assert_allclose(frame["field"].data, u)
