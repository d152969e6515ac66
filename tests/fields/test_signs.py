"""Parameters of the wrong sign: refused where they can be seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, ParameterError, ShapeError, StepCount
from physkit.fields import Field
from physkit.fields.equations import Diffusion
from physkit.geometry import Grid

eq = pk.equations

WRONG = {
    "Diffusion: diffusivity": lambda: eq.Diffusion(-0.1),
    "Diffusion: diffusivity must not be negative; got -0.2": lambda: eq.Diffusion([0.1, -0.2]),
    "Diffusion: diffusivity must not be negative; got nan": lambda: eq.Diffusion(np.nan),
    "Burgers: viscosity": lambda: eq.Burgers(-0.1),
    "Wave: speed": lambda: eq.Wave(-1.0),
    "NavierStokes: viscosity": lambda: eq.NavierStokes(-1e-3),
    "VorticityTransport: drag": lambda: eq.VorticityTransport(0.1, -0.1),
    "FisherKPP: capacity must be positive; got 0": lambda: eq.FisherKPP(1.0, 0.0),
    "GrayScott: kill": lambda: eq.GrayScott(0.1, -0.1),
    "Schroedinger: mass": lambda: eq.Schroedinger(mass=-1.0),
    "ShallowWaterFV: dry": lambda: eq.ShallowWaterFV(dry=0.0),
    "ShallowWater: viscosity": lambda: eq.ShallowWater(viscosity=-1.0),
    "GravityWaves: depth": lambda: eq.GravityWaves(depth=-1.0),
    "Drag: friction": lambda: pk.Drag(-1.0),
    "Drag: density": lambda: pk.Drag(1.0, density=0.0),
}


@pytest.mark.parametrize("message", WRONG)
def test_parameters_of_the_wrong_sign_are_refused(message):
    with pytest.raises(ParameterError, match=message):
        WRONG[message]()


def test_traced_parameters_pass():
    field = Field.from_function(Grid([1.0], (4,)), lambda x: x)
    clock = Clock.at(StepCount.of(0), jnp.asarray(0.0), jnp.asarray(0.1))

    def total(nu):
        return jnp.sum(jnp.abs(Diffusion(nu).rate(clock, field).coefficients) ** 2)

    assert np.isfinite(jax.grad(total)(-0.1))


def test_drag_acts_on_velocities_not_on_vorticities():
    grid = Grid([1.0, 1.0], (4, 4))
    drops = pk.Particles(jnp.ones((2, 2)) * 0.3, jnp.zeros((2, 2)), 1.0, grid.space)
    state = {"particles": drops, "fluid": Field(1.0, grid)}
    clock = Clock.at(StepCount.of(0), jnp.asarray(0.0), jnp.asarray(0.1))
    with pytest.raises(ShapeError, match="Advance the velocity, by NavierStokes"):
        pk.Drag(1.0).rate(clock, state)
