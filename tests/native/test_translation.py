"""What is translated to C computes what JAX computes."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from physkit.core import LINEAR_CALL, linear_call
from physkit.core.numerics._dependence import _CALLS
from physkit.native import NotTranslatableError, sum_over_partners
from physkit.native._translate import Translation
from physkit.particles.forces.pairs._pair_sum import pair_sum
from physkit.particles.neighbors import AllPairs
from tests.native.evaluate import by_jax, by_native_code, primitives

SPECIAL = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    -1.5,
    2.5,
    -2.5,
    7.0,
    -300.7,
    4e9,
    -4e9,
    1e19,
    -2e19,
    1e30,
    -1e-30,
]
SPECIAL = [*SPECIAL, np.inf, -np.inf, np.nan]  # fmt: skip


@pytest.fixture(autouse=True)
def mixed_types():
    """Here they are what is tested."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _on_one_device(x):
    """As programs for several devices are told where numbers are."""
    axis_types = (jax.sharding.AxisType.Explicit,)
    mesh = jax.make_mesh((1,), ("d",), axis_types=axis_types, devices=jax.devices()[:1])
    spec = jax.sharding.PartitionSpec()
    return jax.sharding.reshard(x, jax.sharding.NamedSharding(mesh, spec))


# Rounded as IEEE 754 says; a pair of functions where a zero's sign matters.
FLOATS = {
    "abs": lambda x, y: lax.abs(x),
    "1 / abs": lambda x, y: 1 / lax.abs(x),
    "add": lambda x, y: x + y,
    "ceil": lambda x, y: lax.ceil(x),
    "clamp": lambda x, y: lax.clamp(y, x, 2 * y),
    "clamp between numbers": lambda x, y: lax.clamp(jnp.asarray(-1, x.dtype), x, jnp.asarray(2, x.dtype)),
    "equal": lambda x, y: (x == y) * 1 + (x != y) * 2,
    "compare": lambda x, y: (x < y) * 1 + (x <= y) * 2 + (x > y) * 4 + (x >= y) * 8,
    "div": lambda x, y: x / y,
    "floor": lambda x, y: lax.floor(x),
    "is_finite": lambda x, y: lax.is_finite(x),
    "max": lambda x, y: lax.max(x, y),
    "min": lambda x, y: lax.min(x, y),
    "mul": lambda x, y: x * y,
    "1 / mul": lambda x, y: 1 / (x * y),
    "neg": lambda x, y: -x,
    "1 / neg": lambda x, y: 1 / -x,
    "powers": lambda x, y: lax.integer_pow(x, 2) + lax.integer_pow(x, -1) * lax.integer_pow(y, 3),
    "power 0": lambda x, y: lax.integer_pow(x, 0),
    "round to even": lambda x, y: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "round away from 0": lambda x, y: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "select_n": lambda x, y: jnp.where(x < y, x, 3),
    "sign": lambda x, y: lax.sign(x),
    "1 / sign": lambda x, y: 1 / lax.sign(x),
    "sqrt": lambda x, y: lax.sqrt(x),
    "square": lambda x, y: lax.square(x),
    "sub": lambda x, y: x - y,
    "reshard": lambda x, y: _on_one_device(x) * 1,
    "copy": lambda x, y: lax.optimization_barrier(jnp.copy(x)),
    "to float32": lambda x, y: x.astype(jnp.float32),
    "to float64": lambda x, y: x.astype(jnp.float64),
    "to int32": lambda x, y: x.astype(jnp.int32),
    "to int64": lambda x, y: x.astype(jnp.int64) & 0xFFFFF,
    "to high bits": lambda x, y: x.astype(jnp.int64),
    "to uint8": lambda x, y: x.astype(jnp.uint8),
    "to uint32": lambda x, y: x.astype(jnp.uint32),
    "to uint64": lambda x, y: x.astype(jnp.uint64),
    "to bool": lambda x, y: x.astype(bool),
}  # fmt: skip
# Of the C library, or of functions.h: relative errors, of float32 and of float64.
INEXACT = {
    "erfc": (lax.erfc, 8e-6, 2e-13),
    "exp": (lax.exp, 1e-6, 4e-15),
    "power -5": (lambda x: lax.integer_pow(x, -5), 1e-6, 1e-15),
    "rsqrt": (lax.rsqrt, 4e-7, 1e-15),
}
INTEGERS = {
    "abs": lambda x, y: jnp.abs(x),
    "add": lambda x, y: x + y,
    "and": lambda x, y: x & y,
    "clamp": lambda x, y: lax.clamp(y, x, y + 100),
    "compare": lambda x, y: (x == y) * 1 + (x != y) * 2 + (x < y) * 4 + (x >= y) * 8,
    "max": lambda x, y: lax.max(x, y),
    "min": lambda x, y: lax.min(x, y),
    "mul": lambda x, y: x * y,
    "not": lambda x, y: ~x,
    "or": lambda x, y: x | y,
    "power": lambda x, y: lax.integer_pow(x, 3),
    "select_n": lambda x, y: jnp.where(x < y, x, y),
    "sign": lambda x, y: lax.sign(x),
    "sub": lambda x, y: x - y,
    "to int32": lambda x, y: x.astype(jnp.int32),
    "to uint32": lambda x, y: x.astype(jnp.uint32),
    "to uint64": lambda x, y: x.astype(jnp.uint64),
    "to uint8": lambda x, y: x.astype(jnp.uint8),
    "to bool": lambda x, y: x.astype(bool),
    "xor": lambda x, y: x ^ y,
}
BOOLS = {
    "and": lambda x, y: x & y,
    "not": lambda x, y: ~x,
    "or": lambda x, y: x | y,
    "to int32": lambda x, y: x.astype(jnp.int32) - y,
    "xor": lambda x, y: x ^ y,
}


def _as_floats(value):
    """A number as floats that have all its bits; a pair for integers of 64."""
    if value.dtype.name not in ("int64", "uint64"):
        return value.astype(jnp.float64 if value.dtype != jnp.float32 else value.dtype)
    low = (value & 0xFFFFF).astype(jnp.float64)
    return low, value.astype(jnp.float64)


def _table(functions):
    return lambda x, y, _: {name: _as_floats(f(x, y)) for name, f in functions.items()}


def _pairs(values, dtype):
    x, y = zip(*itertools.product(values, values), strict=True)
    return np.array(x, dtype), np.array(y, dtype)


def _assert_equal(function, x, y, context=()):
    got, expected = by_native_code(function, x, y, context), by_jax(function, x, y, context)
    for (path, a), b in zip(jax.tree.leaves_with_path(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b, str(path))


def test_floats(dtype):
    x, y = _pairs(SPECIAL, dtype)
    _assert_equal(_table(FLOATS), x, y)


def test_functions_that_are_not_exact(dtype):
    x = np.concatenate([SPECIAL, np.random.default_rng(0).normal(0, 4, 100)]).astype(dtype)
    got = by_native_code(lambda x, y, _: {k: f(x) for k, (f, *_) in INEXACT.items()}, x, x)
    for name, (function, *tolerances) in INEXACT.items():
        expected = np.asarray(function(jnp.asarray(x)))
        rtol = tolerances[dtype == jnp.float64]
        # Where the result is hardly a normal number it may be 0.
        tiny = 20 * float(np.finfo(dtype).tiny)
        np.testing.assert_allclose(got[name], expected, rtol, tiny, err_msg=name)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.uint32, np.uint64])
def test_integers(dtype):
    limits = np.iinfo(dtype)
    values = [limits.min, limits.min + 1, 0, 1, 3, 77, limits.max - 1, limits.max]
    # The least number is its own opposite, and has no sign of another.
    _assert_equal(_table(INTEGERS), *_pairs(values, dtype))


def test_bools():
    _assert_equal(_table(BOOLS), *_pairs([False, True], bool))


def test_numbers_in_the_code():
    """Also those that C cannot write as they are."""

    def function(x, y, _):
        floats = [x + np.float64(c) for c in (0.1, -1e300, np.inf, -np.inf, np.nan)]
        # A sum of them would wrap around, and be right again.
        least = jnp.where(x > 0, np.int64(-(2**63)), np.int64(-5))
        most = jnp.where(x > 0, np.uint64(2**64 - 1), np.uint64(5))
        return [*floats, _as_floats(least), _as_floats(most)]

    x = np.array([0.5, -0.5])
    _assert_equal(function, x, x)


@pytest.mark.parametrize("seed", [0, 1])
def test_random_functions(dtype, seed):
    """Ten operations, each of what came before, of which none depends on the order of rounding."""
    choose = np.random.default_rng(seed)
    names = [k for k in FLOATS if not k.startswith(("to ", "compare", "equal", "is_finite"))]
    programs = [
        [(choose.choice(names), *choose.integers(0, 2 + k, 2)) for k in range(10)] for _ in range(8)
    ]

    def run(program, x, y):
        values = [x, y]
        for name, a, b in program:
            values.append(FLOATS[name](values[a], values[b]))
        return values[-1]

    x, y = choose.normal(0, 3, (2, 200)).astype(dtype)
    _assert_equal(lambda x, y, _: [run(program, x, y) for program in programs], x, y)


def _gathers(i, j, tables):
    """From tables of one to three axes, at places outside of them, too, in all modes."""
    line, plane, block = tables
    out = [line[i], line.at[i].get(mode="fill", fill_value=7)]
    for mode in ("fill", "clip"):
        out += [
            line.at[i].get(mode=mode),
            plane.at[i, j].get(mode=mode),
            plane.at[i].get(mode=mode),  # a row
            plane.at[:, j].get(mode=mode),
            block.at[i, 1, j].get(mode=mode),
            block.at[..., j].get(mode=mode),
            jnp.take(block, i, axis=1, mode=mode),
        ]
    inside = jnp.clip(i, 0, 2)
    return [*out, plane.at[inside, inside].get(mode="promise_in_bounds")]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.uint8, bool])
def test_gathers(kind):
    choose = np.random.default_rng(3)
    tables = [choose.integers(0, 9, shape).astype(kind) for shape in ((4,), (4, 3), (3, 2, 5))]
    tables = jax.tree.map(jnp.asarray, tables)
    i, j = _pairs([-9, -1, 0, 1, 2, 3, 4, 5, 2**31 - 1], np.int32)

    def function(x, y, tables):
        of_each = jax.vmap(jax.vmap(lambda i, j: _gathers(i, j, tables)))
        return jax.tree.map(_as_floats, of_each(jnp.broadcast_to(x, y.shape), y))

    _assert_equal(function, i, j, tables)


def test_numpy_tables_without_double_precision():
    """JAX takes them for single precision, and C must read them as such."""
    table = np.linspace(0, 1, 7)

    with jax.enable_x64(False):
        i = np.arange(7, dtype=np.int32)
        got = by_native_code(lambda x, y, _: [jnp.asarray(table)[x] + y], i, i.astype(np.float32))
    np.testing.assert_array_equal(got[0], table.astype(np.float32) + i.astype(np.float32))


def _shapes(x, y, matrix):
    """Operations that move elements, and reductions: of `[c k 2 3]`."""
    both = jnp.concatenate([x + 0 * y, y + 0 * x], axis=-1)
    a, b = jnp.split(both, [2], axis=-1)
    return [
        jnp.flip(both, (2, 3)),
        jnp.swapaxes(both, -1, -2) * jnp.swapaxes(both, -1, -2),
        both.reshape(*both.shape[:2], 3, 4),
        both[..., ::-2],
        both[..., 1:4:2],
        jnp.squeeze(b[..., :1, :], 2)[..., None] - a[..., :1, :],
        jnp.broadcast_to(x[..., :1], x.shape) * matrix,
        jnp.sum(both, (2, 3)),
        jnp.sum(x, 2),
        jnp.max(both, 3),
        jnp.min(both, 2),
        jnp.all(both > 0, 3) * 1.0,
        jnp.any(both > 0, (2, 3)) * 1.0,
        jnp.concatenate([x, jnp.broadcast_to(matrix, x.shape)], 2),
        jnp.stack([x, y], 3),
        jnp.unstack(x, axis=2)[1],
        jnp.tile(x, (1, 1, 2, 3)),
        jax.lax.pad(x, jnp.asarray(7.0), [(0, 0, 0), (0, 0, 0), (1, 0, 2), (-1, 2, 1)]),
        jax.lax.pad(x, jnp.asarray(-1.0), [(0, 0, 0), (0, 0, 0), (0, 0, 0), (2, -4, 0)]),
    ]


def test_shapes_and_reductions():
    x, y = np.random.default_rng(5).normal(size=(2, 6, 2, 3))
    matrix = jnp.arange(6.0).reshape(2, 3)
    _assert_equal(lambda x, y, m: _shapes(x, y, m[None, None]), x, y, matrix)


@jax.custom_jvp
def _doubled(x):
    return 2 * x


@jax.custom_vjp
def _tripled(x):
    return 3 * x


_doubled.defjvp(lambda x, dx: (_doubled(*x), 2 * dx[0]))
_tripled.defvjp(lambda x: (_tripled(x), None), lambda _, g: (3 * g,))


def _calls(x, y, z):
    inner = jax.jit(lambda x: jax.checkpoint(_doubled)(x) - _tripled(y) * jnp.sin(z))
    return [jax.jit(inner)(x) + jax.jvp(_doubled, (x,), (y,))[1], linear_call(_times, _times, z, y)]


def _times(z, y):
    return z * y


def test_functions_within_functions():
    x, y = np.random.default_rng(6).normal(size=(2, 6))
    _assert_equal(_calls, x, y, jnp.asarray(0.3))


def test_all_that_is_translated_is_tested():
    x, i, z = jnp.ones((1, 1)), jnp.ones((1, 1), jnp.int32), jnp.ones((1, 1, 2, 3))
    tables = [jnp.ones((4,) * k) for k in (1, 2, 3)]
    traced = [
        jax.make_jaxpr(_table(FLOATS))(x, x, ()),
        *(jax.make_jaxpr(f)(x) for f, *_ in INEXACT.values()),
        jax.make_jaxpr(_table(INTEGERS))(i, i, ()),
        jax.make_jaxpr(_shapes)(z, z, z),
        jax.make_jaxpr(jax.vmap(jax.vmap(lambda i: _gathers(i, i, tables))))(i),
        jax.make_jaxpr(jax.grad(lambda x: x[0, 0] * x[0, 0]))(x),  # add_any
        jax.make_jaxpr(_calls)(x, x, x),
    ]
    found = {name for jaxpr in traced for name in primitives(jaxpr.jaxpr)}
    assert found >= {*Translation.translated, LINEAR_CALL}
    older_names = {"pjit", "closed_call", "core_call", "checkpoint", "custom_vjp_call_jaxpr"}
    assert found >= set(_CALLS) - older_names


def _keys(i):
    return jax.random.key_data(jax.random.fold_in(jax.random.key(0), i))[0] * 1.0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, y, _: jnp.sin(x), "sin"),
        (lambda x, y, _: (x.astype(jnp.int32) // 2) * 1.0, "of int32|rem|div"),
        (lambda x, y, _: jax.vmap(jax.vmap(_keys))(x.astype(jnp.uint32)), "random"),
        (lambda x, y, _: x.astype(jnp.bfloat16) * 1.0, "bfloat16"),
        (lambda x, y, _: [x, jax.debug.callback(print, x)][0], "debug_callback"),
        (lambda x, y, _: jnp.sum(x[..., None][..., :0], -1), "nothing|numbers"),
        (lambda x, y, _: lax.select_n(x.astype(jnp.int32), x, x, x), "more than two"),
        (lambda x, y, _: x > 0, "numbers of pairs"),
        (lambda x, y, _: jnp.zeros((1, 1, 0)) * x[..., None], "numbers of pairs"),
        (lambda x, y, _: sum((k * x for k in range(1, 1100)), x), "too many"),
    ],
)
def test_what_is_not_translated_is_named(function, message):
    x = np.linspace(-1, 1, 5)
    with pytest.raises(NotTranslatableError, match=message):
        by_native_code(function, x, x)


def test_sums_of_what_is_not_translated_are_those_of_jax():
    def kernel(x, y, context, present):
        return jnp.where(present, jnp.sin(x - y), 0)

    x = jnp.linspace(-1, 1, 40)
    with pytest.raises(NotTranslatableError, match="sin"):
        sum_over_partners(kernel, x, x, (), None)
    got = jax.jit(lambda x: pair_sum(kernel, x, (), AllPairs(), -1))(x)
    np.testing.assert_allclose(got, jnp.sum(jnp.sin(x[:, None] - x), 1), atol=1e-13)
