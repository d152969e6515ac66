"""Power spectra: Parseval, shells, bad input."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ParameterError
from physkit.fields import Field, power_spectrum
from physkit.fields._power_spectrum import _add_in_order, _add_shell_by_shell
from physkit.geometry import Box, Grid, Neumann, SphericalGrid


@pytest.mark.parametrize("shape", [(8,), (7,), (6, 8), (5, 7), (4, 6, 5)])
@pytest.mark.parametrize("vector", [False, True])
def test_shells_add_up_to_the_mean_square(shape, vector):
    grid = Grid(np.linspace(1.0, 2.0, len(shape)), shape)
    parts = (len(shape),) if vector else ()
    u = Field(np.random.default_rng(0).normal(size=(*parts, *shape)), grid, vector=vector)
    power, norm = eqx.filter_jit(lambda u: (power_spectrum(u).power, u.norm()))(u)
    np.testing.assert_allclose(np.sum(power), norm**2, rtol=1e-12)


def test_a_wave_is_in_its_shell():
    grid = Grid([2 * np.pi, 2 * np.pi], (16, 16))
    u = Field.from_function(grid, lambda x, y: jnp.sin(3 * x) * jnp.cos(4 * y))
    found = power_spectrum(u)
    np.testing.assert_allclose(found.power[5], 0.25, rtol=1e-12)
    np.testing.assert_allclose(found.k[5], 5.0)


def test_shells_on_a_sphere_are_degrees_and_add_up_to_the_mean_square():
    grid = SphericalGrid(2.0, 5)
    values = np.random.default_rng(0).normal(size=(2, *grid.shape))
    u = Field(grid.ifft(grid.fft(jnp.asarray(values))), grid)
    found = eqx.filter_jit(power_spectrum)(u)
    np.testing.assert_allclose(np.sum(found.power), np.sum((u * u).mean()), rtol=1e-12)
    wave = Field.from_function(grid, lambda x, y: 2 + jnp.cos(3 * x) * jnp.cos(y) ** 3)
    k, power = eqx.filter_jit(power_spectrum)(wave)
    np.testing.assert_allclose(k, np.sqrt(np.arange(6) * np.arange(1, 7)) / 2, rtol=1e-12)
    # ½ of the mean of cos⁶ over the sphere, 16/35.
    np.testing.assert_allclose(power, [4, 0, 0, 8 / 35, 0, 0], atol=1e-13)


def test_gpus_add_the_same_without_atomic_additions():
    squared, shell = np.random.default_rng(0).uniform(size=50), np.arange(50) % 7
    expected = _add_in_order(7, jnp.asarray(squared), jnp.asarray(shell))
    found = _add_shell_by_shell(7, jnp.asarray(squared), jnp.asarray(shell))
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    u = Field(jnp.ones((4, 4)), Grid([1.0, 1.0], (4, 4)))
    lowered = jax.jit(lambda u: power_spectrum(u).power).trace(u)
    assert "scatter" in lowered.lower(lowering_platforms=("cpu",)).as_text()
    assert "scatter" not in lowered.lower(lowering_platforms=("cuda",)).as_text()


def test_power_spectra_between_walls_are_errors():
    u = Field(1.0, Grid(Box([1.0], False), 4), boundary=Neumann())
    with pytest.raises(ParameterError, match="walls along x"):
        power_spectrum(u)
