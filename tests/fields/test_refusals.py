"""What fields and their equations refuse at the start, where it went wrong later or never."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import DeclarationError, ObserverError, ParameterError, ShapeError
from physkit.fields import CGridShallowWaterState, ElectromagneticField, Field
from physkit.fields.equations import (
    Ball,
    ConvolutionalPML,
    Drude,
    Lorentz,
    Maxwell,
    ShallowWater,
    Sponge,
    WavePulse,
)
from physkit.fields.lattice_boltzmann import LatticeBoltzmann
from physkit.geometry import Box, Grid, NoSlip, SphericalGrid
from physkit.integrators import RK4, Strang, Yee
from physkit.simulate import Simulation, evaluate, simulate

CHANNEL = Grid(Box([2.0, 1.0], periodic=(True, False)), (8, 6))


def start(term, state):
    simulate(Simulation(RK4(term), dt=1e-3), state, 1)


@pytest.mark.parametrize(
    ("wind", "words"),
    [
        ({"wind_x": np.ones(5)}, r"wind_x is a number, \[6\] along y or \[8, 6\].*\(5,\)"),
        ({"wind_x": np.ones(8)}, r"wind_x is a number, \[6\]"),
        ({"wind_y": np.ones((8, 6))}, r"wind_y is a number, \[7\] along y or \[8, 7\].*\(8, 6\)"),
        ({"wind_x": np.ones((1, 8, 6))}, r"wind_x is a number"),
    ],
)
def test_winds_over_other_points_are_named(wind, words):
    """They were TypeErrors of JAX, of shapes that cannot be added."""
    water = CGridShallowWaterState.of(CHANNEL, 1.0, boundary=NoSlip())
    with pytest.raises(ShapeError, match=words):
        start(ShallowWater(1.0, **wind), water)


@pytest.mark.slow
def test_winds_that_fit():
    water = CGridShallowWaterState.of(CHANNEL, 1.0, boundary=NoSlip())
    for x, y in ((np.ones(6), np.ones(7)), (np.ones((8, 1)), np.ones((8, 7))), (1.0, 1.0)):
        start(ShallowWater(1.0, wind_x=jnp.asarray(x), wind_y=jnp.asarray(y)), water)


def test_rotation_that_changes_with_y_needs_walls_across_y():
    """f = f₀ + βy jumped where the box repeats."""
    torus = CGridShallowWaterState.of(Grid([2.0, 1.0], (8, 6)), 1.0)
    with pytest.raises(ParameterError, match=r"beta=1 .*would jump.*periodic="):
        start(ShallowWater(1.0, beta=1.0), torus)
    start(ShallowWater(1.0, beta=0.0, coriolis=1.0), torus)
    start(ShallowWater(1.0, beta=1.0), CGridShallowWaterState.of(CHANNEL, 1.0))


def test_water_on_a_sphere_is_another_state():
    with pytest.raises(ShapeError, match="plane Grid; got a SphericalGrid"):
        CGridShallowWaterState.of(SphericalGrid(1.0, 10), 1.0)


def test_sides_of_layers():
    """Without sides it was an IndexError in the run; text came apart into letters."""
    assert Sponge(1.0, 0.3, "y_low").sides == ("y_low",)
    assert ConvolutionalPML(4, sides="x_low").sides == ("x_low",)
    for layer in (lambda s: Sponge(1.0, 0.3, s), lambda s: ConvolutionalPML(4, sides=s)):
        with pytest.raises(ParameterError, match="a layer without sides"):
            layer(())
        with pytest.raises(ParameterError, match="sides are called like 'x_low'"):
            layer(("x",))
    dye = Field(1.0, CHANNEL, None, pk.boundaries.Neumann(0.0))
    for side in ("x_low", "z_low"):
        with pytest.raises(DeclarationError, match=f"no layer absorbs at {side}"):
            start(Sponge(1.0, 0.3, side), dye)
    start(Sponge(1.0, 0.3, "y_low"), dye)


def test_values_of_light_are_by_component():
    grid, unchecked = Grid([1.0, 1.0], (8, 8)), inspect.unwrap(ElectromagneticField.of)
    for values in (lambda x, y: x, np.ones((8, 8)), 1.0):
        with pytest.raises(ParameterError, match=r"by component, {'Ez': …}, of Ez, Hx, Hy; got"):
            unchecked(grid, values)


def test_energy_of_the_only_field_there_is():
    """It said that the integrator holds no Maxwell, of one by a name."""
    light = ElectromagneticField.of(Grid([1.0, 1.0], (8, 8)), {"Ez": 1.0})
    state = {"f": light, "g": light}
    one, two = (Maxwell(component=name) for name in "fg")
    sim = Simulation(Yee(one), dt=0.01)
    found = evaluate(sim, state, energy=pk.quantities.ElectromagneticEnergy())["energy"]
    assert found == pytest.approx(0.5)
    with pytest.raises(ObserverError, match="none of g; it holds Maxwell of f"):
        evaluate(sim, state, energy=pk.quantities.ElectromagneticEnergy("g"))
    both = Simulation(Strang(Yee(one), Yee(two)), dt=0.01)
    with pytest.raises(
        ObserverError, match="none of the state; it holds Maxwell of f, Maxwell of g"
    ):
        evaluate(both, state, energy=pk.quantities.ElectromagneticEnergy())


@pytest.mark.parametrize(
    "make",
    [
        LatticeBoltzmann,
        ShallowWater,
        Drude,
        lambda x: Drude(-1.0),
        lambda x: Lorentz(1.0, x),
        lambda x: Lorentz(1.0, -1.0),
        lambda x: Lorentz(x, 1.0),
        lambda x: Ball([0.5, 0.5], x),
        lambda x: WavePulse(1.0, x, 1.0),
    ],
)
def test_nan_and_other_signs_are_refused(make):
    """A run under NaN advised a time step that is NaN times larger."""
    with pytest.raises(ParameterError, match=r"must (be positive|not be negative); got (nan|-1)"):
        make(jnp.nan)
    jax.eval_shape(make, 1.0)


def test_a_term_of_another_kind_is_called_by_its_class():
    with pytest.raises(DeclarationError, match=r"must be an AbstractStaggeredWave; got a Maxwell$"):
        pk.integrators.StaggeredLeapfrog(Maxwell())


def test_finite_volumes_have_no_beta_where_y_repeats():
    water = pk.components.ShallowWaterState.of(Grid([2.0, 1.0], (8, 6)), 1.0)
    with pytest.raises(ParameterError, match="would jump where the box repeats"):
        pk.init(Simulation(RK4(pk.equations.ShallowWaterFV(beta=1.0)), dt=0.01), water)


def test_a_wind_and_a_beta_over_deep_water():
    deep = Grid(Box([2.0, 1.0, 1.0], periodic=(True, True, False)), (4, 4, 4))
    water = pk.components.HydrostaticState.of(deep, lambda x, y, z: z)
    with pytest.raises(ShapeError, match=r"wind_x is a number, \[4\] along y or \[4, 4\]"):
        start(pk.equations.HydrostaticFlow(1.0, wind_x=np.ones(5)), water)
    with pytest.raises(ParameterError, match="would jump where the box repeats"):
        start(pk.equations.HydrostaticFlow(1.0, beta=0.2), water)
