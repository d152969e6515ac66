"""Balanced flows: the battery, waves and instabilities in closed form, what is conserved."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, ParameterError, ShapeError, StepCount
from physkit.fields import Field
from physkit.fields.equations import QuasiGeostrophic, SurfaceQuasiGeostrophic
from physkit.geometry import Box, Grid, Neumann
from physkit.testing import check_tendency

PLANE = Grid([3.0, 2.0], (8, 6))
CLOCK = Clock.at(StepCount.of(0), jnp.asarray(0.0), jnp.asarray(0.1))


def noise(grid=PLANE, layers=2):
    components = () if layers is None else (layers,)
    values = np.random.default_rng(0).normal(size=components + grid.shape)
    return Field(jnp.asarray(values), grid)


def hills():
    return Field.from_function(PLANE, lambda x, y: jnp.sin(2 * jnp.pi * x / 3) * jnp.cos(np.pi * y))


def three_layers():
    return QuasiGeostrophic(
        0.01, [0.2, 0.3, 0.5], [1.1, 0.7], surface=0.4, beta=0.6, mean_flow=[0.5, 0.1, -0.2],
        drag=0.3, topography=hills(), order=2,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("equation", "layers"),
    [
        pytest.param(three_layers, 3, marks=pytest.mark.slow),
        pytest.param(
            lambda: QuasiGeostrophic(0.01, surface=0.4, beta=0.6), 1, marks=pytest.mark.slow
        ),
        (lambda: SurfaceQuasiGeostrophic(0.01, 0.2, order=2), None),
    ],
    ids=["three layers", "one layer", "surface"],
)
def test_battery(equation, layers):
    check_tendency(equation(), noise(layers=layers), ignore=("topography.grid",))


def test_the_streamfunction_inverts_potential_vorticity():
    equation = three_layers()
    stream = noise(layers=3).spectrum().dealiased().field()
    stream = stream.replace(data=stream.data - stream.data.mean((1, 2), keepdims=True))
    again = equation.streamfunction(equation.potential_vorticity(stream))
    np.testing.assert_allclose(again.data, stream.data, atol=1e-12)
    u, v = equation.velocity(equation.potential_vorticity(stream))
    divergence = u.spectrum().derivative(0) + v.spectrum().derivative(1)
    assert np.abs(divergence.field().data).max() < 1e-11


@pytest.mark.slow
def test_energy_and_enstrophies_are_conserved():
    """To the order of the time step; by an exact rate they stand still to rounding."""
    grid = Grid([3.0, 2.0], (24, 16))
    equation = QuasiGeostrophic(0.0, [0.4, 0.6], [0.9], surface=0.2)
    start = noise(grid).spectrum().dealiased().field()

    @jax.jit
    def changes(q):
        rate = equation.nonlinear(CLOCK, q).field()
        slope = jax.grad(lambda x: equation.energy(q.replace(data=x)))(q.data)
        return jnp.sum(slope * rate.data), jnp.sum(q.data * rate.data, axis=(1, 2)), rate.norm()

    energy, enstrophies, size = changes(start)
    assert abs(energy) < 1e-13 * size * start.norm()
    assert np.abs(enstrophies).max() < 1e-12 * size * start.norm() / float(grid.cell_volume)
    surface = SurfaceQuasiGeostrophic()
    b = start.replace(data=start.data[0])
    rate = surface.nonlinear(CLOCK, b).field()
    assert abs((b * rate).integral()) < 1e-13 * rate.norm() * b.norm()
    assert abs((surface.streamfunction(b) * rate).integral()) < 1e-13 * rate.norm() * b.norm()


@pytest.mark.slow
def test_a_rossby_wave_moves_at_its_speed():
    """ω = −βk/(k² + l² + L_d⁻²), by RK4 steps of order 4."""
    beta, radius, k, l = 1.3, 0.7, 2, 1
    grid = Grid([2 * np.pi, 2 * np.pi], (8, 8))
    equation = QuasiGeostrophic(surface=radius**-2, beta=beta)
    wave = Field.from_function(grid, lambda x, y: jnp.cos(k * x + l * y))
    start = equation.potential_vorticity(wave.replace(data=wave.data[None]))
    end = pk.simulate(pk.Simulation(pk.ETDRK4(equation), dt=0.02), start, 200).state
    omega = -beta * k / (k**2 + l**2 + radius**-2)
    exact = Field.from_function(grid, lambda x, y: jnp.cos(k * x + l * y - omega * 4.0))
    assert np.abs(equation.streamfunction(end).data[0] - exact.data).max() < 1e-9


def test_phillips_instability_grows_at_its_rate():
    """σ = ½ k U √((1 − k²)/(1 + k²)) of two equal layers, in units of L_d and the shear U."""
    k = 0.6
    equation = QuasiGeostrophic.two_layers(0.0, 1.0, 1.0)
    grid = Grid([2 * np.pi / k, 2 * np.pi / k], (8, 4))
    x = np.asarray(grid.coordinates()[0])
    start = Field(
        jnp.asarray(1e-8 * np.stack([np.cos(k * x), np.sin(k * x)]) + 0 * np.zeros((1, 1, 4))), grid
    )
    observer = pk.Every(100, energy=pk.quantities.EddyEnergy())
    sim = pk.Simulation(pk.ETDRK4(equation), dt=0.1, observers=observer)
    energy = np.asarray(pk.simulate(sim, start, 600).frames["energy"])
    rate = 0.5 * np.log(energy[-1] / energy[-3]) / 20
    assert rate == pytest.approx(0.5 * k * np.sqrt((1 - k**2) / (1 + k**2)), rel=1e-4)


def test_flow_over_topography_stands_where_vorticity_follows_the_ground():
    """With q + b a function of ψ nothing moves: ∇²ψ + b = −ψ."""
    b = hills().spectrum().dealiased().field()
    k2 = (2 * np.pi / 3) ** 2 + np.pi**2
    equation = QuasiGeostrophic(topography=b)
    stream = b.replace(data=b.data[None] / (k2 - 1.0))
    rate = equation.nonlinear(CLOCK, equation.potential_vorticity(stream))
    assert np.abs(rate.field().data).max() < 1e-12


def test_bad_input_is_an_error():
    with pytest.raises(ShapeError, match="2 layers have 1 interfaces"):
        QuasiGeostrophic(0.0, [1.0, 1.0])
    with pytest.raises(ShapeError, match="one mean flow each"):
        QuasiGeostrophic(0.0, [1.0, 1.0], [1.0], mean_flow=[1.0, 2.0, 3.0])
    with pytest.raises(ParameterError, match="depth must be positive"):
        QuasiGeostrophic(0.0, [1.0, -1.0], [1.0])
    for wrong in ({"deformation_radius": -1.0}, {"deformation_radius": 1.0, "depth_ratio": 0.0}):
        with pytest.raises(ParameterError, match=r"(radius|ratio) must be positive"):
            QuasiGeostrophic.two_layers(0.0, shear=1.0, **wrong)
    with pytest.raises(ParameterError, match="order must be 1"):
        SurfaceQuasiGeostrophic(order=0)
    with pytest.raises(ShapeError, match=r"real numbers \[2, x, y\]"):
        pk.init(
            pk.Simulation(pk.RK4(QuasiGeostrophic.two_layers(0.0, 1.0, 1.0)), 0.1),
            noise(layers=None),
        )
    walls = Grid(Box([3.0, 2.0], (True, False)), (8, 6))
    channel = Field(jnp.zeros((1, 8, 6)), walls, boundary=Neumann())
    with pytest.raises(ParameterError, match="walls"):
        pk.init(pk.Simulation(pk.RK4(QuasiGeostrophic()), 0.1), channel)
