"""Every equation through the battery, and against what is known of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
import physkit.fields.equations
from physkit.core import is_abstract
from physkit.fields import Field
from physkit.fields.equations import (
    Advection,
    AdvectionBy,
    Brusselator,
    Burgers,
    Closure,
    Diffusion,
    FisherKPP,
    GrayScott,
    KortewegDeVries,
    KuramotoSivashinsky,
    Schroedinger,
    Wave,
)
from physkit.fields.operators import Central
from physkit.geometry import Box, Dirichlet, Grid, Neumann
from physkit.testing import check_tendency

PERIODIC = Grid([3.0, 2.0], (8, 6))
LINE = Grid([3.0], (12,))
CHANNEL = Grid(Box([3.0, 2.0], (True, False)), (6, 5))
BETWEEN = Grid(Box([2.0], (False,)), (7,))


def noise(grid, components=(), boundary=None, *, vector=False, kind=float, seed=0):
    rng = np.random.default_rng(seed)
    shape = components + grid.points(grid.cell)
    values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind is complex else 0)
    return Field(jnp.asarray(1.0 + 0.3 * values), grid, boundary=boundary, vector=vector)


def line():
    return noise(LINE)


def plane():
    return noise(PERIODIC)


def wall():
    return noise(BETWEEN, boundary=(Dirichlet(0.3)))


def flow(grid=PERIODIC, boundary=None):
    return noise(grid, (grid.dimension,), boundary, vector=True, seed=1)


def species(grid=PERIODIC, boundary=None):
    return noise(grid, (2,), boundary)


def carried(grid, boundary=None):
    return {"dye": noise(grid, boundary=boundary), "flow": flow(grid, boundary)}


def string(grid, boundary=None):
    return {
        "displacement": noise(grid, boundary=boundary),
        "velocity": noise(grid, boundary=boundary, seed=1),
    }


def psi(grid=LINE):
    return noise(grid, kind=complex)


def convolution(d, channels, width=1):
    kernel = {1: eqx.nn.Conv1d, 2: eqx.nn.Conv2d}[d]
    keys = jax.random.split(jax.random.key(0))
    return eqx.nn.Sequential(
        [
            kernel(channels, 3, 2 * width + 1, key=keys[0]),
            eqx.nn.Lambda(jnp.tanh),
            kernel(3, channels, 1, key=keys[1]),
        ]
    )


def walls():
    return {"y": (Dirichlet(0.4), Neumann(0.2))}


FD = Central(4)
EQUATIONS = [
    (lambda: Advection([0.7, -0.4]), plane),
    (lambda: Advection(0.7, scheme=FD), wall),
    (lambda: Advection([0.7, -0.4]), lambda: noise(PERIODIC, kind=complex)),
    (lambda: AdvectionBy("flow", of="dye"), lambda: carried(PERIODIC)),
    (lambda: AdvectionBy("flow", "dye", Central()), lambda: carried(CHANNEL, walls())),
    (lambda: Diffusion([0.3, 0.7]), species),
    (lambda: Diffusion(0.3, scheme=FD), lambda: species(CHANNEL, walls())),
    (lambda: Diffusion(0.3, scheme=FD), psi),
    (lambda: Burgers(0.1), line),
    (lambda: Burgers(0.1), flow),
    (lambda: Burgers(0.1, scheme=Central()), lambda: flow(CHANNEL, walls())),
    (lambda: Burgers(0.1, scheme=Central()), wall),
    (lambda: KortewegDeVries(5.0, 0.4), line),
    (lambda: KuramotoSivashinsky(1.1, 0.2, 0.9), line),
    (lambda: KuramotoSivashinsky(1.1, 0.2, 0.9, "height"), plane),
    (lambda: FisherKPP(1.2, 0.8), plane),
    (lambda: FisherKPP(jnp.linspace(1.0, 2.0, 7)), wall),
    (lambda: GrayScott(0.04, 0.06), species),
    (lambda: Brusselator(1.2, 2.0), lambda: species(CHANNEL, walls())),
    (lambda: Wave(1.3), lambda: string(PERIODIC)),
    (lambda: Wave(jnp.linspace(1.0, 2.0, 7), scheme=FD), lambda: string(BETWEEN, Neumann())),
    (lambda: Schroedinger(0.5, 1.2, 0.9, 0.3), psi),
    (lambda: Schroedinger(Well(0.7)), lambda: noise(PERIODIC, kind=complex)),
    (lambda: Closure(convolution(2, 2), padding=1), lambda: species(CHANNEL, walls())),
    (lambda: Closure(convolution(1, 1, 0)), wall),
]


class Well(pk.Module):
    """A potential with a parameter, which depends on time and place."""

    depth: jax.Array = pk.param()

    def __call__(self, t, *x):
        return self.depth * sum(jnp.cos(k + t) for k in x)


def _name(case):
    return type(case[0]()).__name__


@pytest.mark.parametrize(("equation", "state"), EQUATIONS, ids=map(_name, EQUATIONS))
def test_battery(equation, state):
    check_tendency(equation(), state())


def test_all_are_covered():
    public = [getattr(physkit.fields.equations, n) for n in dir(physkit.fields.equations)]
    kinds = {
        x
        for x in public
        if isinstance(x, type) and issubclass(x, pk.AbstractTendency) and not is_abstract(x)
    }
    assert kinds >= {type(make()) for make, _ in EQUATIONS}
