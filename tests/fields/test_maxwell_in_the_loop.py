"""Light in a run: backwards, over devices, in single precision; and wrong input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    DeclarationError,
    NotReversible,
    ObserverError,
    ParameterError,
    ShapeError,
    StepSizeError,
)
from physkit.fields import ElectromagneticField
from physkit.fields.equations import (
    Ball,
    ConvolutionalPML,
    Dielectric,
    Drude,
    Lorentz,
    Maxwell,
    PlaneWave,
    PointDipole,
    WavePulse,
)
from physkit.geometry import Box, Dirichlet, Grid
from physkit.integrators import RK4, Yee
from physkit.observe import ElectromagneticEnergy, Every
from physkit.simulate import Reversible, Simulation, simulate
from physkit.testing import check_devices, check_tendency

from .light import BOX, advance, random_field


# A short pulse on a few cells, which is all that derivatives need.
@pytest.mark.filterwarnings("ignore:waves of|the WavePulse")
def test_lossless_steps_go_back_bit_by_bit_and_give_the_same_gradient():
    media = lambda e: (Dielectric(e), Lorentz(1.0, 3.0))
    source = lambda w: PointDipole([0.3], "Ez", WavePulse(w, 0.3, 0.4))
    grid = Grid(Box([1.0], False), (6,))
    start = Maxwell(media(2.0)).add_memory(ElectromagneticField.of(grid))

    def power(permittivity, frequency, adjoint):
        maxwell = Maxwell(media(permittivity), source(frequency))
        simulation = Simulation(Yee(maxwell), dt=0.08, adjoint=adjoint)
        return (simulate(simulation, start, 30).state.Ez ** 2).integral()

    slope = lambda adjoint: jax.jit(jax.value_and_grad(lambda *x: power(*x, adjoint), (0, 1)))
    exact = Reversible(smallest_range=1e3)
    found = slope(exact)(2.0, 5.0)[1]
    checked = slope(pk.NestedCheckpoint())
    np.testing.assert_allclose(found, checked(2.0, 5.0)[1], rtol=1e-9)
    value = lambda e, w: checked(e, w)[0]
    for k, (e, w) in enumerate(((1e-4, 0.0), (0.0, 1e-4))):
        difference = (value(2.0 + e, 5.0 + w) - value(2.0 - e, 5.0 - w)) / 2e-4
        np.testing.assert_allclose(found[k], difference, rtol=1e-5)
    maxwell = Maxwell(media(2.0), source(5.0))
    report = pk.adjoints.reversibility_report(
        Simulation(Yee(maxwell), dt=0.08, adjoint=exact), start, 30
    )
    assert report.bitwise


@pytest.mark.parametrize(
    "lossy",
    [Maxwell(Dielectric(2.0, 0.1)), Maxwell(Drude(1.0, 0.1)), Maxwell(layer=ConvolutionalPML(3))],
)
def test_what_absorbs_is_not_reversed(lossy):
    grid = Grid(Box([1.0], False), (8,))
    simulation = Simulation(Yee(lossy), dt=0.05, adjoint=Reversible())
    with pytest.raises(NotReversible, match="absorbs"):
        simulate(simulation, lossy.add_memory(ElectromagneticField.of(grid)), 2)


def layered_disk(mode, component):
    grid = Grid(Box([1.0, 1.0], (False, True)), (16, 8))
    disk = Ball([0.5, 0.5], 0.2)
    media = (Dielectric(2.0), Dielectric(4.0, shape=disk), Drude(5.0, 0.1, disk))
    source = PointDipole([0.3, 0.5], component, WavePulse(4.0, 0.25, 0.72))
    maxwell = Maxwell(media, source, ConvolutionalPML(3, stretching=3.0, shift=0.05))
    return Simulation(Yee(maxwell), dt=0.9 * maxwell.longest_step(grid)), maxwell.add_memory(
        random_field(grid, mode=mode)
    )


@pytest.mark.slow
def test_layers_on_both_sides_may_overlap_in_the_part_of_a_device():
    grid = Grid(Box([1.0, 1.2], False), (10, 10))
    maxwell = Maxwell(layer=ConvolutionalPML(3, stretching=2.0, shift=0.1))
    state = maxwell.add_memory(random_field(grid, mode="TM"))
    check_devices(Simulation(Yee(maxwell), dt=0.01), state, 6, devices=[(2, 2)])
    with pytest.raises(ShapeError, match="x_low and x_high do not fit into 5"):
        maxwell.layer.sides_of(Grid(Box([1.0, 1.2], False), (5, 10)))


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "component"), [("TM", "Ez"), ("TE", "Ey")])
def test_devices_agree(mode, component):
    simulation, state = layered_disk(mode, component)
    check_devices(simulation, state, 6, devices=[(2, 2)])


@pytest.mark.slow
def test_float32_and_vmap():
    simulation, state = layered_disk("TM", "Ez")
    end = simulate(simulation, state, 10).state
    low = jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x, state)
    near = simulate(simulation, low, 10).state
    assert near.Ez.data.dtype == jnp.float32
    np.testing.assert_allclose(near.Ez.data, end.Ez.data, atol=1e-4)
    grid = Grid([1.0], (8,))
    start = ElectromagneticField.of(grid, {"Ez": lambda x: jnp.sin(2 * jnp.pi * x)})

    def run(permittivity):
        simulation = Simulation(Yee(Maxwell(Dielectric(permittivity))), dt=0.1)
        return simulate(simulation, start, 5).state.Ez.data

    many = jnp.array([1.0, 2.0])
    np.testing.assert_allclose(jax.vmap(run)(many), jnp.stack([run(e) for e in many]), rtol=1e-12)


@pytest.mark.slow
def test_battery_of_the_rates():
    grid = Grid(Box([1.0, 1.2], (False, True)), (5, 4))
    media = (Dielectric(2.0, 0.3, Ball([0.43, 0.59], 0.32)), Lorentz(0.5, 3.0, 0.1))
    maxwell = Maxwell(media, PointDipole([0.33, 0.55], "Ey", WavePulse(2.5, 0.4, 1.2)))
    field = random_field(grid, mode="TE").with_poles(1)
    # Currents in the oscillators, which are damped.
    currents = {"J" + name[1]: getattr(field, "J" + name[1]) for name in field.electric}
    noise = {n: jax.random.normal(jax.random.key(4), j.data.shape) for n, j in currents.items()}
    field = field.replace({n: j.replace(data=noise[n]) for n, j in currents.items()})
    check_tendency(maxwell, field, ignore=["speed", "spin"])
    small = Simulation(RK4(maxwell), dt=0.001)
    assert np.isfinite(np.asarray(simulate(small, field, 2).state.Ex.data)).all()


def test_wrong_input_is_explained():
    grid = Grid(Box([1.0, 1.0], False), (8, 8))
    field = ElectromagneticField.of(grid)
    with pytest.raises(StepSizeError, match="Courant"):
        simulate(Simulation(Yee(Maxwell()), dt=0.1), field, 1)
    with pytest.raises(ParameterError, match="PerfectConductor"):
        ElectromagneticField.of(grid, boundary=Dirichlet(0.0))
    with pytest.raises(ParameterError, match="mode"):
        ElectromagneticField.of(BOX, mode="TE")
    with pytest.raises(ParameterError, match="no component"):
        ElectromagneticField.of(grid, {"Ex": 1.0})
    with pytest.raises(ShapeError, match="add_memory"):
        simulate(Simulation(Yee(Maxwell(layer=ConvolutionalPML(3))), dt=0.01), field, 1)
    with pytest.raises(ShapeError, match="do not fit"):
        Maxwell(layer=ConvolutionalPML(5)).add_memory(field)
    with pytest.raises(DeclarationError, match="repeats"):
        Maxwell(layer=ConvolutionalPML(3, sides=("y_low",))).add_memory(random_field(BOX))
    with pytest.raises(DeclarationError, match="media"):
        Maxwell(media=3.0)
    with pytest.raises(ParameterError, match="across its direction"):
        PlaneWave([1.0], [1.0, 0, 0], jnp.sin)
    with pytest.raises(ParameterError, match="Ex, Ey or Ez"):
        PointDipole([0.5], "Hz", jnp.sin)
    energy = Every(1, e=ElectromagneticEnergy())
    with pytest.raises(ObserverError, match="Maxwell"):
        simulate(Simulation(RK4(lambda t, f: {}), dt=0.1, observers=energy), field, 1)


def test_a_mask_is_no_shape_and_a_wave_does_not_come_in_through_a_layer():
    grid = Grid(Box([2.0], False), (40,))
    inside = Dielectric(4.0, shape=lambda x: jnp.abs(x - 1.0) < 0.2)
    with pytest.raises(ParameterError, match="not whether a point is inside"):
        advance(Maxwell(inside), ElectromagneticField.of(grid), 1)
    wave = PlaneWave([1.0], [0, 0, 1.0], WavePulse(20.0, 0.2, 0.9), margin=6)
    behind = [
        Dielectric(4.0, shape=lambda x: 1.0 - x),
        Dielectric(np.linspace(1, 2, 40)),
        Drude(3.0),
    ]
    for medium in behind:
        with pytest.raises(ParameterError, match="is that of the wave, ε = 1"):
            advance(Maxwell(medium, wave), ElectromagneticField.of(grid), 1)
    with pytest.raises(ShapeError, match="a permittivity of shape"):
        advance(Maxwell(Dielectric(np.ones(7)), wave), ElectromagneticField.of(grid), 1)
    for layer in (ConvolutionalPML(6), ConvolutionalPML(8, sides=("x_high",))):
        with pytest.raises(ParameterError, match="comes in 6 cells before x_"):
            advance(Maxwell(sources=wave, layer=layer), ElectromagneticField.of(grid), 1)
