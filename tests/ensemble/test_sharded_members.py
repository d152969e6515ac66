"""Members whose domains are decomposed over devices: chunks of members, each member on a grid of devices."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import DeviceError, ParameterError, find
from physkit.ensemble import Sweep, SweepAxis, sweep
from physkit.fields import Field
from physkit.fields.equations import Diffusion
from physkit.geometry import Box, Grid
from physkit.integrators import RK4
from physkit.observe import Every
from physkit.simulate import Simulation


@functools.cache
def heat():
    grid = Grid(Box([1.0, 1.0]), (8, 4))
    u = Field.from_function(grid, lambda x, y: jnp.sin(2 * jnp.pi * x) + 0 * y)
    mean = Every(4, square=lambda now: now.state.norm(), u=lambda now: now.state.data)
    return Simulation(RK4(Diffusion(0.1)), dt=1e-3, observers=mean), u


def diffusivities():
    return SweepAxis(lambda m: find(m, Diffusion).diffusivity, [0.1, 0.2, 1e200, 0.4])


@pytest.fixture
def emulated_devices(monkeypatch):
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")


def test_sharded_members_equal_those_on_one_device(emulated_devices, tmp_path):
    unsharded = sweep(heat(), 8, over=diffusivities(), progress=False)
    sharded = sweep(heat(), 8, over=diffusivities(), domain=(2,), to=tmp_path, progress=False)
    assert sharded.failed[0].member == unsharded.failed[0].member == 2
    assert list(sharded.ok) == list(unsharded.ok)
    for name in ("u", "square"):
        found, expected = np.asarray(sharded[name]), np.asarray(unsharded[name])
        assert found.shape == expected.shape
        np.testing.assert_allclose(found[sharded.ok], expected[unsharded.ok], atol=1e-14)


def test_the_block_in_which_a_member_fails_is_found(emulated_devices):
    growing = SweepAxis(diffusivities().where, [20.0])
    unsharded, sharded = (
        sweep(heat(), 400, over=growing, domain=d, progress=False) for d in (None, (2,))
    )
    assert sharded.failed == unsharded.failed
    assert 4 < sharded.failed[0].step < 200


def test_impossible_domains_are_refused():
    with pytest.raises(ParameterError, match="devices per axis"):
        Sweep(heat(), 8, over=diffusivities(), domain=(0, 2))
    with pytest.raises(DeviceError, match=r"over 64 devices; this process has"):
        sweep(heat(), 8, over=diffusivities(), domain=(64,), progress=False)
