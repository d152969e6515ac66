"""A flow measured by probes: what they record, and that a fit finds its parameters."""

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.coupling import interpolate
from physkit.fields.equations import velocity_from_vorticity
from physkit.simulate import simulate
from physkit.systems import fit_flow, probe_flow, probed_flow


@pytest.mark.slow
def test_probes_read_the_velocity_where_they_are():
    place = jnp.array([[1.0, 2.0], [4.0, 0.5]])
    sim, start = probed_flow(place=place, resolution=32)
    done = simulate(sim, start, 10)
    assert done.frames["probes"].shape == (3, 2, 2)
    velocity = velocity_from_vorticity(done.state)
    np.testing.assert_allclose(done.frames["probes"][-1], interpolate(velocity, place))


def test_the_start_is_the_same_on_every_grid():
    (_, coarse), (_, fine) = (probed_flow(resolution=n) for n in (32, 64))
    waves = [np.asarray(f.spectrum().coefficients) / f.data.size for f in (coarse, fine)]
    np.testing.assert_allclose(np.abs(waves[0][:6, :6]), np.abs(waves[1][:6, :6]), atol=1e-14)
    np.testing.assert_allclose(coarse.norm(), 2.0)


@pytest.mark.slow  # the demo at reduced size does the same
def test_a_fit_finds_viscosity_and_forcing():
    found = fit_flow(probe_flow(50), progress=False)
    assert np.all(np.abs(found.value - found.truth) < 4 * found.error)
    assert np.all(found.error < 0.3 * found.truth)
    losses = found.fit.history.loss
    assert losses[-1] < 0.5 * losses[0]
