"""Members whose domains are cut over devices: chunks outside, a grid of devices inside."""

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


def heat():
    grid = Grid(Box([1.0, 1.0]), (8, 4))
    u = Field.from_function(grid, lambda x, y: jnp.sin(2 * jnp.pi * x) + 0 * y)
    mean = Every(4, square=lambda now: now.state.norm(), u=lambda now: now.state.data)
    return Simulation(RK4(Diffusion(0.1)), dt=1e-3, observers=mean), u


def over():
    return SweepAxis(lambda m: find(m, Diffusion).diffusivity, [0.1, 0.2, 1e200, 0.4])


@pytest.fixture
def emulated(monkeypatch):
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")


def test_sharded_members_equal_those_on_one_device(emulated, tmp_path):
    whole = sweep(heat(), 8, over=over(), progress=False)
    cut = sweep(heat(), 8, over=over(), domain=(2,), to=tmp_path, progress=False)
    assert cut.failed[0].member == whole.failed[0].member == 2
    assert list(cut.ok) == list(whole.ok)
    for name in ("u", "square"):
        found, wanted = np.asarray(cut[name]), np.asarray(whole[name])
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found[cut.ok], wanted[whole.ok], atol=1e-14)


def test_the_block_in_which_a_member_fails_is_found(emulated):
    slowly = SweepAxis(over().where, [20.0])
    whole, cut = (sweep(heat(), 400, over=slowly, domain=d, progress=False) for d in (None, (2,)))
    assert cut.failed == whole.failed
    assert 4 < cut.failed[0].step < 200


def test_impossible_domains_are_refused():
    with pytest.raises(ParameterError, match="devices per axis"):
        Sweep(heat(), 8, over=over(), domain=(0, 2))
    with pytest.raises(DeviceError, match=r"over 64 devices; this process has"):
        sweep(heat(), 8, over=over(), domain=(64,), progress=False)
