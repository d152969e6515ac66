"""Noise on fields: the battery, its correlations, and the spectra that it keeps up."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, ParameterError, StepCount
from physkit.fields import Field
from physkit.fields.equations import Diffusion, OrnsteinUhlenbeckNoise, WhiteNoise
from physkit.fields.operators import Central
from physkit.geometry import Box, Grid, Neumann
from physkit.testing import check_tendency

KEY = jax.random.key(3)
PLANE = Grid([3.0, 2.0], (8, 6))
CHANNEL = Grid(Box([3.0, 2.0], (True, False)), (6, 5))


def clock_of(step, dt=0.1):
    return Clock.at(StepCount.of(step), jnp.asarray(0.0), jnp.asarray(dt), KEY)


@pytest.mark.parametrize(
    ("term", "grid"),
    [
        pytest.param(lambda: WhiteNoise(0.7, 0.3, conserved=True), PLANE, marks=pytest.mark.slow),
        pytest.param(lambda: WhiteNoise(0.7, conserved=True), CHANNEL, marks=pytest.mark.slow),
        (lambda: OrnsteinUhlenbeckNoise(0.7, 0.5, 0.3), PLANE),
        pytest.param(lambda: WhiteNoise(0.7, 0.3), CHANNEL, marks=pytest.mark.slow),
    ],
)
def test_battery(term, grid):
    boundary = None if all(grid.periodic) else Neumann()
    check_tendency(term(), Field(0.3, grid, boundary=boundary), key=KEY)


def draws(term, field, count=4000, dt=0.1):
    """Rates of many steps, `[count, *points]`."""

    @jax.jit
    def all_of(steps):
        one = lambda n: (
            term.rate(
                Clock.at(StepCount.of(0).plus(n), jnp.asarray(0.0), jnp.asarray(dt), KEY), field
            ).data
        )
        return jax.lax.map(one, steps, batch_size=500)

    return np.asarray(all_of(jnp.arange(count)))


def test_white_noise_is_white_in_space_and_time():
    grid, dt = Grid([4.0], (16,)), 0.1
    noise = draws(WhiteNoise(0.7), Field(0.0, grid), dt=dt)
    variance = 0.7**2 / (0.25 * dt)
    np.testing.assert_allclose(np.mean(noise**2), variance, rtol=0.02)
    neighbors = np.mean(noise * np.roll(noise, 1, 1)), np.mean(noise[1:] * noise[:-1])
    # 64 000 products: a standard error of 0.4 %.
    assert np.all(np.abs(neighbors) < 0.016 * variance)


def test_correlation_over_a_length():
    grid, dt, length = Grid([8.0], (64,)), 0.1, 0.6
    noise = draws(WhiteNoise(0.7, length), Field(0.0, grid), dt=dt)
    for shift in (0, 4, 8, 16):
        r = shift * 0.125
        gauss = np.exp(-(r**2) / (2 * length**2)) / np.sqrt(2 * np.pi * length**2)
        measured = np.mean(noise * np.roll(noise, shift, 1)) * dt
        np.testing.assert_allclose(measured, 0.49 * gauss, atol=0.02 * 0.49)


def test_correlation_over_a_length_between_walls():
    """As in a box that repeats in the middle, twice as strong beside a wall; conserved or not, in two parts."""
    grid, dt, length = Grid(Box([8.0], (False,)), (64,)), 0.1, 0.6
    noise = draws(WhiteNoise(0.7, length), Field(0.0, grid, boundary=Neumann()), dt=dt)
    even = 0.49 / np.sqrt(2 * np.pi * length**2)
    for shift in (0, 4, 8, 16):
        products = np.mean((noise[:, : 64 - shift] * noise[:, shift:])[:, 16 : 48 - shift]) * dt
        gauss = np.exp(-((shift * 0.125) ** 2) / (2 * length**2))
        np.testing.assert_allclose(products, even * gauss, atol=0.03 * 0.49)
    np.testing.assert_allclose(np.mean(noise[:, 0] ** 2) * dt, 2 * even, rtol=0.15)
    two = Field(np.zeros((2, 6, 5)), CHANNEL, boundary=Neumann())
    kept = draws(WhiteNoise(0.7, 0.4, conserved=True), two, 3)
    assert np.std(kept) > 0.1
    np.testing.assert_allclose(kept.sum((2, 3)), 0, atol=1e-11)


@pytest.mark.parametrize("periodic", [True, False])
def test_conserved_noise_moves_and_makes_nothing(periodic):
    grid = Grid(Box([2.0, 3.0], (periodic, periodic)), (8, 6))
    field = Field(0.0, grid, boundary=None if periodic else Neumann())
    noise = draws(WhiteNoise(0.7, conserved=True), field, 50)
    assert np.std(noise) > 1
    np.testing.assert_allclose(noise.sum((1, 2)), 0, atol=1e-11)


def test_complex_noise_has_half_in_each_part():
    noise = draws(WhiteNoise(0.7), Field(0.0 + 0.0j, Grid([4.0], (16,))), 2000)
    np.testing.assert_allclose(np.mean(abs(noise) ** 2), 0.49 / (0.25 * 0.1), rtol=0.03)
    assert abs(np.mean(noise**2)) < 0.03 * np.mean(abs(noise) ** 2)


def test_complex_noise_is_conserved_between_walls():
    field = Field(0.0 + 0.0j, Grid(Box([2.0], False), (8,)), boundary=Neumann())
    noise = draws(WhiteNoise(0.7, 0.3, conserved=True), field, 20)
    assert np.std(noise.imag) > 0.1
    np.testing.assert_allclose(noise.sum(1), 0, atol=1e-11)


def test_streams_and_components_draw_their_own_numbers():
    field = Field(0.0, Grid([4.0], (16,)))
    one = WhiteNoise(1.0).rate(clock_of(0), field).data
    np.testing.assert_array_equal(one, WhiteNoise(1.0).rate(clock_of(0), field).data)
    state = {"u": field}
    others = [
        WhiteNoise(1.0, stream=1).rate(clock_of(0), field).data,
        WhiteNoise(1.0).rate(clock_of(1), field).data,
        WhiteNoise(1.0, component="u").rate(clock_of(0), state)["u"].data,
    ]
    assert all(abs(np.corrcoef(one, other)[0, 1]) < 0.9 for other in others)


@pytest.mark.slow
@pytest.mark.parametrize("conserved", [False, True])
def test_a_rough_surface_has_its_spectrum(conserved):
    # ∂h/∂t = ν∇²h − ch + η: S(k) = σ² m/(2(νk² + c)), m = 1, or k² where η = ∇·ζ.
    nu, sigma, size, n = 0.5, 0.3, 8.0, 32
    grid = Grid([size], (n,))

    def decay(t, h):
        return h * -0.5

    sim = pk.Simulation(
        pk.ETDRK2(Diffusion(nu), WhiteNoise(sigma, conserved=conserved), decay),
        dt=0.04,
        observers=pk.Every(50, h=pk.FieldValues()),
    )
    runs = jax.jit(jax.vmap(lambda seed: pk.simulate(sim, Field(0.0, grid), 4000, key=seed)["h"]))
    h = np.asarray(runs(jax.random.split(KEY, 40)))[:, 10:]
    spectrum = np.mean(abs(np.fft.rfft(h)) ** 2, (0, 1)) * size / n**2
    k = 2 * np.pi / size * np.arange(1, 6)
    exact = sigma**2 * (k**2 if conserved else 1) / (2 * (nu * k**2 + 0.5))
    np.testing.assert_allclose(spectrum[1:6], exact, rtol=0.06)


def test_noise_that_remembers():
    grid, tau, sigma, dt = Grid([4.0], (16,)), 0.8, 0.7, 0.1
    term = OrnsteinUhlenbeckNoise(sigma, tau)
    sim = pk.Simulation(pk.ETDRK2(term), dt=dt, observers=pk.Every(1, eta=pk.FieldValues()))
    eta = np.asarray(pk.simulate(sim, Field(0.0, grid), 12000, key=KEY)["eta"])[100:]
    variance = sigma**2 / (2 * tau) / 0.25
    np.testing.assert_allclose(np.mean(eta**2), variance, rtol=0.04)
    later = np.mean(eta[8:] * eta[:-8]) / np.mean(eta**2)
    np.testing.assert_allclose(later, np.exp(-8 * dt / tau), atol=0.03)


def test_it_drives_another_field():
    grid = Grid([4.0], (16,))
    start = {"phi": Field(0.0, grid), "noise": Field(0.0, grid)}
    law = pk.ETDRK2(
        pk.equations.CahnHilliard(component="phi"),
        OrnsteinUhlenbeckNoise(0.1, 0.5, component="noise"),
        lambda t, s: {"phi": s["noise"]},
    )
    end = pk.simulate(pk.Simulation(law, dt=0.1), start, 5, key=KEY).state
    assert float(end["phi"].norm()) > 1e-3
    assert float(end["noise"].norm()) > 1e-2


def test_wrong_input_is_an_error():
    field = Field(0.0, CHANNEL, boundary=Neumann())
    with pytest.raises(ParameterError, match="time must be positive"):
        OrnsteinUhlenbeckNoise(1.0, 0.0)
    flow = pk.Euler(Diffusion(0.1, scheme=Central()), WhiteNoise(1.0))
    with pytest.raises(ParameterError, match="needs noise: give a key"):
        pk.simulate(pk.Simulation(flow, dt=0.01), field, 1)
