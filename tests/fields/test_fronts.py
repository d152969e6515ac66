"""Fronts into empty ground: rounding ahead of them is no seed."""

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Clock, StepCount
from physkit.fields import Field
from physkit.fields.equations import Diffusion, FisherKPP
from physkit.geometry import Box, Grid, Neumann
from physkit.integrators import ETDRK2, RK4
from physkit.observe import Every, FieldValues, Integral
from physkit.simulate import Simulation, simulate


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "precision"), [(ETDRK2, jnp.float32), (ETDRK2, jnp.float64), (RK4, jnp.float32)]
)
def test_spectral_fronts_run_at_their_own_speed_over_empty_ground(method, precision):
    grid = Grid([256.0], (512,))
    patch = Field.from_function(grid, lambda x: jnp.exp(-(((x - 128) / 4) ** 2)), dtype=precision)
    record = (Every(100, u=FieldValues(), invaded=Integral()),)
    sim = Simulation(method(Diffusion(1.0), FisherKPP(1.0)), 0.05, observers=record)
    frames = simulate(sim, patch, 1000).frames
    invaded = np.asarray(frames["invaded"])
    # Two fronts; 50 is where rounding of 1e-16 would have become 1 000 times the capacity.
    speed = (invaded[-1] - invaded[-5]) / 20 / 2
    assert 0.93 * 2 < speed < 2
    ahead = np.asarray(frames["u"])[-1, :16]
    assert np.max(np.abs(ahead)) < 1e-6  # the front's own thin edge


def test_the_cutoff_is_where_operators_may_be_spectral_and_growth_is_exact_above_it():
    clock = Clock.at(StepCount.of(0), jnp.asarray(0.0), jnp.asarray(0.1))
    values = jnp.asarray([1.0, 0.5, 1e-12, 1e-15, -1e-15, -0.1])
    ring, line = Grid([1.0], (6,)), Grid(Box([1.0], (False,)), (6,))
    logistic = 2.0 * values * (1 - values / 1.5)

    def rate(equation, field):
        return np.asarray(equation.nonlinear(clock, field).data)

    equation = FisherKPP(2.0, 1.5)
    np.testing.assert_array_equal(rate(equation, Field(values, line, None, Neumann())), logistic)
    np.testing.assert_array_equal(
        rate(equation, Field(values, ring)), [*logistic[:3], *(-2.0 * values[3:])]
    )
    own = rate(FisherKPP(2.0, 1.5, cutoff=0.7), Field(values, ring))
    np.testing.assert_array_equal(own, [logistic[0], *(-2.0 * values[1:])])
