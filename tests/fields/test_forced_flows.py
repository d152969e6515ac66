"""Forces beside incompressible flows: their gradients are pressure; rates that do not fit are refused."""

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Clock, ComponentError, ShapeError, StepCount
from physkit.fields import Field
from physkit.fields.equations import BodyForce, NavierStokes
from physkit.fields.operators import Spectral, divergence
from physkit.geometry import Grid
from physkit.integrators import ETDRK2, RK4, Strang
from physkit.simulate import Simulation, simulate

GRADIENT = Grid([2 * np.pi, 2 * np.pi], (16, 16))


def pure_gradient(field):
    """∇(sin x cos y), which is all pressure."""
    x, y = field.coordinates
    return jnp.stack([jnp.cos(x) * jnp.cos(y), -jnp.sin(x) * jnp.sin(y)])


def largest_divergence(state):
    return float(jnp.max(jnp.abs(divergence(state, Spectral()).data)))


@pytest.mark.parametrize("method", [RK4, ETDRK2])
def test_the_gradient_part_of_every_force_is_pressure(method):
    still = Field(0.0, GRADIENT, vector=True)
    equation = NavierStokes(0.01, component="u")

    def push(t, state):
        return {"u": pure_gradient(state["u"]) + jnp.array([0.5, 0.0])[:, None, None]}

    end = simulate(Simulation(method(equation, push), 0.1), {"u": still}, 3).state["u"]
    # Of the force only its mean moves the flow.
    np.testing.assert_allclose(end.data[0], 0.15, rtol=1e-12)
    np.testing.assert_allclose(end.data[1], 0.0, atol=1e-14)


def test_forces_of_other_integrators_do_not_pile_up_as_divergence():
    still = Field(0.0, GRADIENT, vector=True)
    parts = Strang(RK4(lambda t, u: pure_gradient(u)), ETDRK2(NavierStokes(0.01)))
    ends = [simulate(Simulation(parts, 0.1), still, steps).state for steps in (2, 8)]
    # What is left is that of the last half step, however long the run.
    few, many = (largest_divergence(end) for end in ends)
    assert 0 < many <= 1.1 * few


def test_a_body_force_drives_a_velocity_and_names_what_it_cannot_drive():
    rest = Field(0.0, GRADIENT, vector=True)
    integrator = ETDRK2(NavierStokes(0.01), BodyForce((0.5, -1.0)))
    end = simulate(Simulation(integrator, 0.1), rest, 2).state
    np.testing.assert_allclose(end.data[:, 0, 0], [0.1, -0.2], rtol=1e-12)
    with pytest.raises(ComponentError, match="vector field; got a scalar Field"):
        BodyForce((0.0, 1.0)).rate(Clock.at(StepCount.of(0), 0.0, 0.1), Field(0.0, GRADIENT))


def test_a_rate_of_fewer_components_is_refused():
    rest = Field(0.0, GRADIENT, vector=True)
    for scalar in (jnp.ones((16, 16)), jnp.ones(()), jnp.ones((1, 16, 16))):
        for integrator in (
            RK4(lambda t, u, s=scalar: s),
            ETDRK2(NavierStokes(0.1), lambda t, u, s=scalar: s),
        ):
            with pytest.raises(ShapeError, match=r"for a field of shape \(2, 16, 16\)"):
                simulate(Simulation(integrator, 0.1), rest, 1)
