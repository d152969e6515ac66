"""Which functions treat every cell by itself; laws that do not are computed as a whole."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, StepCount, safe_maximum, scale_array, static
from physkit.fields.finite_volume import (
    AbstractConservationLaw,
    AbstractReconstruction,
    AbstractRiemannSolver,
    PiecewiseConstant,
    Rusanov,
    finite_volume_rate,
)
from physkit.fields.stencils import _slabs
from physkit.fields.stencils._locality import is_local, trial_shape

CLOCK = Clock.at(StepCount.of(0), jnp.asarray(0.0), jnp.asarray(0.01), None)


def _sum(a, b):
    return a + b


def _stack_in_a_loop(x):
    return jax.lax.scan(lambda y, _: (y, y), x, None, 2)[1]


LOCAL = {
    "arithmetic": lambda x, c: jnp.where(x > 0, jnp.sin(x) * c, x**2.5),
    "largest of two": lambda x, c: safe_maximum(x, c) + jnp.clip(x, 0, c),
    "a loop": lambda x, c: jax.lax.fori_loop(0, 3, lambda _, y: y * c + x, x),
    "a product": lambda x, c: scale_array(x, c),
    "numbers of all": lambda x, c: x * jnp.sum(jnp.stack([c, c]) ** 2),
    "compiled": lambda x, c: jax.jit(lambda y: jnp.exp(y) * c)(x),
    "zeros": lambda x, c: jnp.zeros_like(x) + jnp.full(x.shape, c) * x,
    "a choice": lambda x, c: jax.lax.cond(c > 0, jnp.sin, jnp.cos, x),
}
OTHERS = {
    "largest of all": lambda x, c: x / jnp.max(jnp.abs(x)),
    "mean": lambda x, c: x - c * jnp.mean(x),
    "shift": lambda x, c: x - jnp.roll(x, 1),
    "running sum": lambda x, c: jnp.cumsum(x, axis=0),
    "reversed": lambda x, c: x[::-1] * c,
    "sorted": lambda x, c: jnp.sort(x, axis=0),
    "compiled": lambda x, c: jax.jit(jnp.max)(x) * x,
    "scan over rows": lambda x, c: jax.lax.map(lambda row: row / jnp.max(row), x),
    "stacked and summed": lambda x, c: x - _stack_in_a_loop(x).sum(),
    "reduction of one's own": lambda x, c: x - jax.lax.reduce(x, c, _sum, range(x.ndim)),
    "one place": lambda x, c: x.at[0].add(c),
    "places": lambda x, c: x * jax.lax.broadcasted_iota(float, x.shape, 0),
    "random numbers": lambda x, c: x + jax.random.normal(jax.random.key(0), x.shape),
    "constants of cells": lambda x, c: x * np.linspace(0, 1, x.size).reshape(x.shape),
    "in a loop": lambda x, c: jax.lax.fori_loop(0, 3, lambda _, y: y - jnp.mean(y), x),
}


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("name", [*LOCAL, *(f"not {n}" for n in OTHERS)])
def test_what_is_local(name, dimension):
    expected = name in LOCAL
    function = LOCAL[name] if expected else OTHERS[name.removeprefix("not ")]
    shape = trial_shape(dimension)
    cell, number = jax.ShapeDtypeStruct(shape, float), jax.ShapeDtypeStruct((), float)
    assert is_local(function, cell, number, shape=shape) == expected


class FastestOfAll(AbstractRiemannSolver):
    """Lax and Friedrichs's flux, with the fastest wave of all faces."""

    def flux(self, law, left, right, axis):
        speeds = [jnp.abs(s) for side in (left, right) for s in law.wave_speeds(side, axis)]
        fastest = jnp.max(jnp.stack(speeds))
        return tuple(
            0.5 * (f + g) - 0.5 * fastest * (v - u)
            for f, g, u, v in zip(
                law.flux(left, axis),
                law.flux(right, axis),
                law.conserved(left),
                law.conserved(right),
                strict=True,
            )
        )


class Burgers(AbstractConservationLaw):
    component: str | None = static(default=None)
    riemann: AbstractRiemannSolver = FastestOfAll()
    reconstruction: AbstractReconstruction = PiecewiseConstant()

    def flux(self, values, axis):
        (u,) = values
        return (u * u / 2,)

    def wave_speeds(self, values, axis):
        (u,) = values
        return u, u


def test_a_law_that_looks_at_all_cells_is_computed_as_a_whole(monkeypatch):
    monkeypatch.setattr(_slabs, "SLAB_BYTES", 256)
    u = np.random.default_rng(0).normal(size=(40, 6))
    grid = pk.Grid(pk.Box([2.0, 1.0]), u.shape)
    rate = finite_volume_rate(Burgers(), pk.Field(jnp.asarray(u), grid)).values
    expected = 0.0
    for axis, spacing in enumerate((2.0 / 40, 1.0 / 6)):
        before = np.roll(u, 1, axis)
        flux = (before**2 + u**2) / 4 - 0.5 * np.abs(u).max() * (u - before)
        expected = expected - (np.roll(flux, -1, axis) - flux) / spacing
    np.testing.assert_allclose(rate, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["magnetized gas", "water"])
def test_others_with_such_a_solver_are_too(kind, monkeypatch):
    rng = np.random.default_rng(1)
    grid = pk.Grid(pk.Box([1.0, 1.0]), (6, 5))
    numbers = [jnp.asarray(1 + 0.3 * rng.random(grid.shape)) for _ in range(3)]
    if kind == "water":
        law, state = (
            pk.equations.ShallowWaterFV(),
            pk.components.ShallowWaterState.of(grid, *numbers[:2]),
        )
    else:
        law = pk.equations.IdealMHD(5 / 3)
        state = pk.components.MagnetizedGas.from_primitive(
            grid, numbers[0], (numbers[1], 0.1, 0.2), numbers[2], (0.5, 0.3, 0.1), gamma=5 / 3
        )
    law = dataclasses.replace(law, riemann=FastestOfAll())

    def rate():
        return jax.tree.leaves(jax.jit(lambda law, state: law.rate(CLOCK, state))(law, state))

    first = rate()
    monkeypatch.setenv("PHYSKIT_NATIVE", "0")
    for x, y in zip(first, rate(), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


class InAWind(AbstractConservationLaw):
    """What a wind carries that is given on the faces across the only axis."""

    wind: jax.Array
    component: str | None = static(default=None)
    riemann: AbstractRiemannSolver = Rusanov()
    reconstruction: AbstractReconstruction = PiecewiseConstant()

    def flux(self, values, axis):
        return (self.wind * values[0],)

    def wave_speeds(self, values, axis):
        return self.wind, self.wind


def test_a_law_with_numbers_of_faces_is_computed_as_a_whole():
    u = np.random.default_rng(2).random(30)
    wind = np.random.default_rng(3).normal(size=31)
    wind[-1] = wind[0]
    law = InAWind(jnp.asarray(wind))
    rate = finite_volume_rate(law, pk.Field(jnp.asarray(u), pk.Grid([3.0], (30,)))).values
    flux = np.where(wind > 0, wind * np.append(u[-1], u), wind * np.append(u, u[0]))
    np.testing.assert_allclose(rate, -np.diff(flux) / 0.1, rtol=1e-10)


class Closing(AbstractConservationLaw):
    """A law whose flux is a Python function."""

    function: Any = static()
    component: str | None = static(default=None)
    riemann: AbstractRiemannSolver = Rusanov()
    reconstruction: AbstractReconstruction = PiecewiseConstant()

    def flux(self, values, axis):
        return (self.function(values[0]),)

    def wave_speeds(self, values, axis):
        return 2 * values[0], 2 * values[0]


def test_a_law_may_close_over_what_is_differentiated():
    u = jnp.asarray(np.random.default_rng(4).random(30))
    field = pk.Field(u, pk.Grid([3.0], (30,)))

    def loss(a):
        law = Closing(lambda u: a * u**2)
        return jnp.sum(finite_volume_rate(law, field).values ** 2)

    step = 1e-5
    difference = (loss(1.3 + step) - loss(1.3 - step)) / (2 * step)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(1.3), difference, rtol=1e-6)
