"""Rates and forces have the shape of what they change: none is broadcast."""

import diffrax
import jax.numpy as jnp
import pytest

import physkit as pk
from physkit.core import ShapeError
from physkit.integrators import (
    BAOAB,
    RK4,
    Diffrax,
    EquationsOfMotion,
    Euler,
    VelocityVerlet,
)

PAIR = pk.Particles([[0.0, 0.0], [1.0, 0.5]])


class Push(pk.AbstractForce):
    """A force of any shape."""

    shape: tuple[int, ...] = pk.static()
    component: str | None = pk.static(default=None)
    conserves_momentum = False

    def force(self, clock, state):
        return jnp.ones(self.shape)


def start(integrator, state):
    return pk.init(pk.Simulation(integrator, dt=0.1), state)


@pytest.mark.parametrize("method", [Euler, RK4, lambda f: Diffrax(diffrax.Tsit5(), f)])
@pytest.mark.parametrize(
    ("rate", "state", "message"),
    [
        (lambda t, y: -y[0], jnp.ones(3), r"the state: its shape \[\] would be broadcast to \[3\]"),
        (lambda t, y: y[:1], jnp.ones((2, 3)), r"shape \[1, 3\] would be broadcast to \[2, 3\]"),
        (lambda t, y: {"a": y["a"][0]}, {"a": jnp.ones(3)}, r"\['a'\]: its shape \[\] would"),
        (lambda t, y: y[0], (jnp.ones(3), jnp.ones(2)), "its form is"),
        (
            lambda t, p: pk.components.ParticleIncrement(velocity=jnp.ones((2, 1))), PAIR,
            r"a change of velocity has shape \[2, 1\]",
        ),
    ],
)  # fmt: skip
def test_rates_are_not_broadcast(method, rate, state, message):
    with pytest.raises(ShapeError, match=message):
        start(method(rate), state)


@pytest.mark.parametrize("shape", [(2, 1), (1, 2)])
@pytest.mark.parametrize(
    "method",
    [VelocityVerlet, lambda f: BAOAB(f, 1.0, 1.0), lambda f: RK4(EquationsOfMotion(f))],
)
def test_forces_are_not_broadcast(method, shape):
    with pytest.raises(ShapeError, match=r"the force of Push has shape .*\[2, 2\], \[n d\]"):
        start(method(Push(shape)), PAIR)


def test_rates_of_the_right_shape_pass():
    start(RK4(lambda t, y: -y), jnp.ones(3))
    start(VelocityVerlet(Push((2, 2))), PAIR)
