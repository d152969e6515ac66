"""Stencils slab by slab: the numbers and derivatives of the whole, without its passes over memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import recomputed, shard, unshard
from physkit.fields.finite_volume import WENO5, PiecewiseConstant, Rusanov, finite_volume_rate
from physkit.fields.stencils import _slabs
from physkit.fields.stencils._computed_once import computed_once
from physkit.fields.stencils._slabs import in_slabs
from physkit.geometry import Box, Grid, Mirror, NoSlip, Outflow
from physkit.parallel import Spmd
from physkit.simulate.distributed._spmd_function import SpmdFunction

pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu", reason="slabs are for CPUs")


@pytest.fixture
def small_slabs(monkeypatch):
    """Slabs of a few rows."""
    monkeypatch.setattr(_slabs, "SLAB_BYTES", 256)


def _stencil(first, second):
    """Row i of the result from the rows i to i + 4 of two arrays and i of a third."""
    (a, b), (c,) = first, second
    slopes = (a[2:] - b[:-2]) * jnp.sin(a[1:-1])
    return slopes[2:] * c + slopes[:-2], c * c


def _arrays(n):
    a, b = jax.random.normal(jax.random.key(0), (2, n + 4, 3))
    return (a, b), (jax.random.normal(jax.random.key(1), (n, 3)),)


@pytest.mark.parametrize("n", [40, 47])
def test_slabs_give_the_numbers_and_derivatives_of_the_whole(small_slabs, n):
    groups = _arrays(n)
    by_slabs = lambda *groups: in_slabs(_stencil, groups, (4, 0))
    assert "while" in jax.jit(by_slabs).lower(*groups).as_text()

    def check(found, expected):
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            assert np.allclose(x, y, rtol=1e-14, atol=1e-14)

    check(jax.jit(by_slabs)(*groups), jax.jit(_stencil)(*groups))
    derivative = lambda f: jax.jit(lambda *x: jax.jvp(f, x, jax.tree.map(jnp.cos, x))[1])
    check(derivative(by_slabs)(*groups), derivative(_stencil)(*groups))
    pullback = lambda f: jax.jit(lambda *x: jax.vjp(f, *x)[1](jax.tree.map(jnp.cos, f(*x))))
    check(pullback(by_slabs)(*groups), pullback(_stencil)(*groups))
    many = jax.tree.map(lambda x: jnp.stack([x, x + 1]), groups)
    check(jax.jit(jax.vmap(by_slabs))(*many), jax.jit(jax.vmap(_stencil))(*many))


def _gas(shape, periodic, boundary, scalars=0):
    rng = np.random.default_rng(0)
    draw = lambda a, b: jnp.asarray(a + b * rng.uniform(-1, 1, shape))
    grid = Grid(Box([1.0] * len(shape), periodic), shape)
    return pk.components.Gas.from_primitive(
        grid, draw(1.0, 0.3), tuple(draw(0.1, 0.3) for _ in shape), draw(1.0, 0.3), gamma=1.4,
        boundary=boundary, scalars=[draw(0.5, 0.5)] * scalars,
    )  # fmt: skip


CASES = {
    "WENO5 on a line": lambda: (
        _gas((300,), (False,), {0: (Mirror(), Outflow())}),
        pk.equations.CompressibleEuler(1.4, reconstruction=WENO5(), keeps_positive=True),
    ),
    "viscous between walls": lambda: (
        _gas((30, 12), (False, True), {0: (NoSlip(), NoSlip())}, scalars=1),
        pk.equations.CompressibleEuler(1.4, viscosity=1e-2, conductivity=1e-2),
    ),
    "space": lambda: (_gas((18, 4, 4), (True,) * 3, None), pk.equations.CompressibleEuler(1.4)),
}


def _whole(monkeypatch):
    monkeypatch.setattr(_slabs, "SLAB_BYTES", 2**20)


def _check_close(found, expected):
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        if jnp.issubdtype(x.dtype, jnp.floating):
            assert np.max(np.abs(x - y)) <= 1e-12 * np.max(np.abs(y), initial=1e-3)


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow) if c == "space" else c for c in CASES]
)
def test_gas_in_slabs_is_gas(small_slabs, monkeypatch, case):
    gas, law = CASES[case]()
    rates = lambda gas: finite_volume_rate(law, gas, jnp.asarray(1e-3))
    found = jax.jit(rates)(gas)
    _whole(monkeypatch)
    _check_close(found, jax.jit(lambda gas: rates(gas))(gas))


@pytest.mark.slow
def test_gas_in_slabs_has_the_derivatives_of_gas(small_slabs, monkeypatch):
    gas = _gas((30, 6), (True, True), None)
    law = pk.equations.CompressibleEuler(1.4, Rusanov(), PiecewiseConstant())

    def loss(gas, law):
        weigh = lambda x: jnp.sum(jnp.sin(jnp.arange(x.size)) * x.ravel())
        rates = recomputed(finite_volume_rate)(law, gas)
        return sum(weigh(r.values) for r in rates.values())

    gradient = lambda: jax.jit(lambda *x: jax.grad(loss, (0, 1), allow_int=True)(*x))(gas, law)
    found = gradient()
    _whole(monkeypatch)
    _check_close(found, gradient())


def test_slabs_of_each_device_give_those_of_one(small_slabs, monkeypatch):
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    gas = _gas((30, 12), (False, True), {0: (NoSlip(), NoSlip())})
    law = pk.equations.CompressibleEuler(1.4, Rusanov(), PiecewiseConstant())
    step = lambda gas: gas.shift(finite_volume_rate(law, gas))
    devices = (1, 2)
    over = unshard(Spmd(SpmdFunction(step), devices)(*shard((gas,), devices)), devices)
    _check_close(over, jax.jit(step)(gas))


def test_what_is_computed_once_is_not_fused_with_what_reads_it():
    def slopes(x, y):
        fluxes = computed_once((x * y + 1, x * y - 2 * x))
        return tuple(f[1:] - f[:-1] for f in fluxes)

    x = jnp.arange(1000.0)
    kernels = jax.jit(slopes).lower(x, 2 * x).compile().as_text().split("\n\n")
    assert any("multiply(" in k for k in kernels)
    assert not any("multiply(" in k and "slice=" in k for k in kernels)


def test_what_is_computed_once_has_derivatives():
    x = jnp.arange(6.0).reshape(2, 3)
    twice = lambda x: sum(a * b for a, b in zip(*(computed_once((x, x**2)),) * 2, strict=True))
    exact = lambda x: x**2 + x**4
    assert np.array_equal(twice(x), exact(x))
    for function in (
        jax.grad(lambda x: twice(x).sum()),
        lambda x: jax.jvp(twice, (x,), (x**0,))[1],
    ):
        assert np.allclose(function(x), 2 * x + 4 * x**3, rtol=1e-15)
