"""The sphere: harmonics, derivatives of flows, what it refuses, equations and files on it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, ParameterError, ShapeError, StepCount
from physkit.fields import Field
from physkit.fields.equations import BarotropicVorticity, Diffusion, SphericalShallowWater
from physkit.geometry import Grid, SphericalGrid
from physkit.storage import load_component
from physkit.testing import check_tendency

RADIUS = 2.0
BALL = SphericalGrid(RADIUS, 7)
CLOCK = Clock.at(StepCount.of(0), jnp.asarray(0.0), jnp.asarray(0.1))


def noise(components=(), grid=BALL):
    """Values of random harmonics, so that nothing is left out."""
    values = np.random.default_rng(0).normal(size=(*components, *grid.shape))
    return Field(grid.ifft(grid.fft(jnp.asarray(values))), grid)


def water():
    """ζ, δ without a mean, and a depth around 5."""
    state = noise((3,))
    lowered = state.data - jnp.asarray(state.mean())[:, None, None]
    return state.replace(data=0.1 * lowered.at[2].add(50.0))


def test_harmonics_are_orthogonal_and_complete():
    field = noise()
    again = BALL.ifft(BALL.fft(field.data))
    np.testing.assert_allclose(again, field.data, atol=1e-13)
    # ∫f² dA = 2πa² Σ (1 or 2) |f|²: Parseval's theorem.
    power = np.sum(BALL.mode_multiplicity() * np.abs(BALL.fft(field.data)) ** 2)
    np.testing.assert_allclose((field**2).integral(), 2 * np.pi * RADIUS**2 * power, rtol=1e-13)


def test_integrals_are_over_the_sphere():
    f = Field.from_function(BALL, lambda longitude, latitude: jnp.sin(latitude) ** 2)
    np.testing.assert_allclose(f.mean(), 1 / 3, rtol=1e-14)
    np.testing.assert_allclose(f.integral(), 4 * np.pi * RADIUS**2 / 3, rtol=1e-14)
    np.testing.assert_allclose(f.norm(), np.sqrt(1 / 5), rtol=1e-14)
    np.testing.assert_allclose(np.sum(BALL.cell_volume) * BALL.shape[0], 4 * np.pi * RADIUS**2)
    np.testing.assert_allclose(np.diff(BALL.cell_edges(1)).sum(), np.pi)


def test_the_laplacian_multiplies_a_harmonic_of_degree_l():
    def harmonic(longitude, latitude):  # degree 5, order 3
        s = jnp.sin(latitude)
        return jnp.cos(latitude) ** 3 * (9 * s**2 - 1) * jnp.sin(3 * longitude)

    f = Field.from_function(BALL, harmonic)
    bent = f.spectrum().laplacian().field()
    np.testing.assert_allclose(bent.data, -30 / RADIUS**2 * f.data, atol=1e-12)
    np.testing.assert_allclose(bent.spectrum().inverse_laplacian().field().data, f.data, atol=1e-13)


def test_vorticity_and_divergence_invert_the_velocity():
    zeta, delta = (BALL.fft(x) for x in water().data[:2])
    flow = BALL.velocity(zeta, delta)
    found = BALL.vorticity_and_divergence(flow)
    np.testing.assert_allclose(found[0], zeta, atol=1e-14)
    np.testing.assert_allclose(found[1], delta, atol=1e-14)
    # A rotation of the whole with rate ω: ζ = 2ω sin φ.
    turning = jnp.stack(
        jnp.broadcast_arrays(3 * RADIUS * jnp.cos(BALL.latitudes), jnp.zeros(BALL.shape))
    )
    curl, divergence = BALL.vorticity_and_divergence(turning)
    expected = jnp.broadcast_to(6 * jnp.sin(BALL.latitudes), BALL.shape)
    np.testing.assert_allclose(BALL.ifft(curl), expected, atol=1e-12)
    np.testing.assert_allclose(divergence, 0, atol=1e-13)


def test_vorticity_is_the_circulation_of_a_flow():
    """Against finite differences of the flow's own values, which know nothing of harmonics."""
    fine = SphericalGrid(RADIUS, 7)
    zeta = fine.fft(water().data[0])
    u, v = (np.asarray(x) for x in fine.velocity(zeta, jnp.zeros_like(zeta)))
    latitudes = np.asarray(fine.latitudes)
    # Around a cap north of a circle: ∮u dl = ∫ζ dA.
    for row in (3, 6, 9):
        around = u[:, row].mean() * 2 * np.pi * RADIUS * np.cos(latitudes[row])
        inside = np.polynomial.legendre.leggauss(40)
        sines = (inside[0] + 1) / 2 * (1 - np.sin(latitudes[row])) + np.sin(latitudes[row])
        mean = np.asarray(zeta)[0].real
        degree = np.arange(8)
        series = mean * np.sqrt(degree + 0.5)
        area = inside[1] * (1 - np.sin(latitudes[row])) / 2 * 2 * np.pi * RADIUS**2
        total = np.sum(area * np.polynomial.legendre.legval(sines, series))
        np.testing.assert_allclose(around, total, rtol=1e-10, atol=1e-12)
    assert np.abs(v).max() > 0


@pytest.mark.parametrize(
    "what",
    [
        lambda f: f.spectrum().derivative("x"),
        lambda f: pk.operators.gradient(f),
        lambda f: pk.operators.laplacian(f, pk.schemes.Central(2)),
        lambda f: f.grid.spacing,
        lambda f: f.padded(1),
        lambda f: pk.elliptic.solve_poisson(f),
        lambda f: f.grid.fft(f.data.astype(complex)),
        lambda f: Field(jnp.zeros(f.grid.shape), f.grid, f.grid.face("x")).coordinates,
        lambda f: pk.equations.Advection([1.0, 0.0]).symbol(f),
        lambda f: pk.equations.VorticityTransport(0.1).nonlinear(CLOCK, f),
    ],
)
def test_what_a_sphere_does_not_have_is_refused(what):
    with pytest.raises(ParameterError, match="sphere"):
        what(noise())


def test_bad_input():
    with pytest.raises(ParameterError, match="radius must be one positive number"):
        SphericalGrid(-1.0, 7)
    with pytest.raises(ParameterError, match="truncation"):
        SphericalGrid(1.0, 0)
    with pytest.raises(ShapeError, match="SphericalGrid; got components"):
        SphericalShallowWater(9.8).symbol(noise())
    flat = Field(jnp.zeros((8, 8)), Grid([1.0, 1.0], (8, 8)))
    with pytest.raises(ShapeError, match="on a Grid"):
        BarotropicVorticity().symbol(flat)
    with pytest.raises(ParameterError, match="depth of water must be positive; got -3"):
        SphericalShallowWater.state(BALL, lambda *x: (0.0, 0.0), lambda *x: -3.0)
    with pytest.raises(ParameterError, match="gravity must be positive"):
        SphericalShallowWater(0.0)
    with pytest.raises(ParameterError, match="viscosity must not be negative"):
        BarotropicVorticity(1.0, -1.0)


@pytest.mark.parametrize(
    ("equation", "field"),
    [
        (lambda: BarotropicVorticity(0.5, 0.1, order=2), noise),
        pytest.param(
            lambda: SphericalShallowWater(2.0, 0.5, 0.1, topography=noise(), order=2),
            water,
            marks=pytest.mark.slow,
        ),
        (lambda: Diffusion(0.3), noise),
    ],
    ids=["vorticity", "shallow water", "diffusion"],
)
def test_battery(equation, field):
    check_tendency(equation(), field(), ignore=("topography.grid",))


def test_shallow_water_conserves_mass_and_energy():
    law = SphericalShallowWater(2.0, 0.5)
    start = water()
    sim = pk.Simulation(pk.RK4(law), dt=0.01)
    end = jax.jit(lambda s: pk.simulate(sim, s, 20).state)(start)
    np.testing.assert_allclose(end.integral()[2], start.integral()[2], rtol=1e-14)
    np.testing.assert_allclose(law.energy(end), law.energy(start), rtol=1e-7)
    assert np.abs(end.data - start.data).max() > 1e-2


def test_gravity_waves_have_their_frequency():
    """ω² = g H l(l + 1)/a² of small waves on a sphere at rest: a quarter of a period leaves no depth."""
    degree, depth, gravity = 3, 4.0, 2.0
    law = SphericalShallowWater(gravity)
    omega = np.sqrt(gravity * depth * degree * (degree + 1)) / RADIUS

    def bump(longitude, latitude):
        return depth + 1e-7 * jnp.cos(latitude) ** 3 * jnp.cos(3 * longitude)

    start = law.state(BALL, lambda longitude, latitude: (0.0, 0.0), bump)
    steps = 40
    sim = pk.Simulation(pk.RK4(law), dt=np.pi / 2 / omega / steps)
    end = jax.jit(lambda s: pk.simulate(sim, s, steps).state)(start)
    assert np.abs(end.data[2] - depth).max() < 1e-5 * 1e-7 + 1e-13
    assert np.abs(end.data[1]).max() > 1e-8


def test_balance_holds_a_zonal_wind():
    law = SphericalShallowWater(2.0, 0.5)
    wind = law.state(
        BALL, lambda longitude, latitude: (jnp.cos(latitude) ** 3, 0.0), lambda *x: 5.0
    )
    held = law.balance(wind)
    np.testing.assert_allclose(held.mean()[2], 5.0, rtol=1e-14)
    rate = jnp.abs(law.nonlinear(CLOCK, held).coefficients).max()
    assert 1e11 * rate < jnp.abs(law.nonlinear(CLOCK, wind).coefficients).max()


def test_damped_water_rests_over_mountains():
    ground = noise()
    law = SphericalShallowWater(2.0, 0.5, viscosity=0.1, topography=ground)
    lake = water().replace(data=jnp.stack([0 * ground.data, 0 * ground.data, 9.0 - ground.data]))
    damped = lake.spectrum().multiply(law.symbol(lake)).coefficients
    rate = damped + law.nonlinear(CLOCK, lake).coefficients + law.steady(lake).coefficients
    assert jnp.abs(rate).max() < 1e-12 * jnp.abs(damped).max()


def test_frames_come_back_as_fields_on_the_sphere(tmp_path):
    sim = pk.Simulation(
        pk.ETDRK2(Diffusion(0.1)), dt=0.1, observers=pk.Every(1, heat=pk.quantities.FieldValues())
    )
    run = pk.run(sim, noise(), 2, to=tmp_path / "out", progress=False)
    series = pk.open(tmp_path / "out")["heat"]
    loaded = load_component(series)
    assert loaded.grid.truncation == 7
    np.testing.assert_allclose(loaded.grid.radius, RADIUS)
    np.testing.assert_allclose(loaded.data, run.state.data, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(series.coordinates()["y"], BALL.latitudes, rtol=1e-15)


def test_pictures():
    ax = pk.plot.globe(noise(), longitude=40, latitude=20)
    assert len(ax.images) == 1
    ax = pk.plot.field(noise())
    assert ax.get_xlabel().startswith("longitude")
    with pytest.raises(ParameterError, match="SphericalGrid"):
        pk.plot.globe(Field(jnp.zeros((8, 8)), Grid([1.0, 1.0], (8, 8))))
