"""Functions at faces by native code: the numbers and derivatives of XLA's, by vector instructions."""

import platform
import re
import subprocess

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, StepCount, cast_floats
from physkit.fields.finite_volume import (
    AWENO5,
    HLL,
    HLLC,
    MUSCL,
    WENO5,
    AUSMPlus,
    ExactRiemann,
    MonotonizedCentral,
    PiecewiseConstant,
    Roe,
    Rusanov,
    Superbee,
)
from physkit.fields.stencils._map_faces import map_faces
from physkit.native import (
    NotTranslatableError,
    _compiler,
    _map_stencil,
    map_stencil,
    native_code_is_used,
)

pytestmark = pytest.mark.skipif(
    not native_code_is_used(), reason="without a C compiler, or on a GPU, all of it is XLA's"
)

CLOCK = Clock.at(StepCount.of(0), jnp.asarray(0.0), jnp.asarray(0.01), None)


def formula(cells, context):
    """Every kind of operation that derivatives go through, of three arrays with 4, 1 and 2 cells."""
    (a, b, c, d), (e,), (f, g) = cells
    slope = jnp.where(b > a, jnp.sqrt(jnp.abs(c) + 1), b * d)
    return (
        slope * context["scale"] + e * f,
        jnp.maximum(a, g) / (context["offset"][1] + e * e),
        jnp.zeros_like(a),
    )


def arguments(axis, shape):
    rng = np.random.default_rng(0)
    counts = (4, 1, 2)
    arrays = []
    for count in counts:
        own = list(shape)
        own[axis] += count - 1
        arrays.append(jnp.asarray(rng.normal(size=own)))
    return arrays, counts, {"scale": jnp.asarray(1.5), "offset": jnp.asarray([0.1, 2.0])}


def _reference(arrays, counts, context, axis):
    n = arrays[0].shape[axis] - (counts[0] - 1)
    cells = [
        [jax.lax.slice_in_dim(x, j, j + n, axis=axis) for j in range(count)]
        for x, count in zip(arrays, counts, strict=True)
    ]
    return formula(cells, context)


# Blocks that are full, that are not, of one face; columns of several blocks.
SHAPES = [(0, (1,)), (0, (64,)), (0, (131,)), (0, (5, 70)), (1, (3, 66)), (1, (2, 3, 65))]


@pytest.mark.parametrize(("axis", "shape"), SHAPES)
def test_values_and_derivatives_are_those_of_slices(axis, shape):
    assert_as_by_slices(map_stencil, axis, shape)


def assert_as_by_slices(by, axis, shape):
    arrays, counts, context = arguments(axis, shape)
    inputs = arrays, context
    rng = np.random.default_rng(1)
    dots, more = (
        jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), inputs) for _ in range(2)
    )

    def native(inputs):
        return map_faces(formula, inputs[0], counts, inputs[1], axis, by)

    def sliced(inputs):
        return _reference(inputs[0], counts, inputs[1], axis)

    def everything(function):
        def loss(inputs):
            return sum(jnp.sum(jnp.sin(x)) for x in function(inputs))

        gradient = jax.grad(loss)
        tangents = jax.jvp(function, (inputs,), (dots,))
        back = jax.vjp(lambda i: jax.jvp(function, (i,), (dots,))[1], inputs)[1](tangents[0])
        return (
            tangents,
            gradient(inputs),
            back,
            jax.jvp(gradient, (inputs,), (more,))[1],
            jax.vmap(gradient)(jax.tree.map(lambda x: jnp.stack([x, 2 * x]), inputs)),
        )

    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12),
        jax.jit(everything, static_argnums=0)(native),
        jax.jit(everything, static_argnums=0)(sliced),
    )


def test_only_what_moves_gets_a_cotangent():
    arrays, counts, context = arguments(0, (70,))
    written = []

    def record(*arguments):
        results, sums = map_stencil(*arguments)
        written.append((len(results), len(sums)))
        return results, sums

    def loss(first):
        return map_faces(formula, [first, *arrays[1:]], counts, context, 0, record)[0].sum()

    gradient = jax.jit(jax.grad(loss))(arrays[0])
    # The three numbers of faces, and on the way back the first array's cotangent alone.
    assert (written[0], written[-1]) == ((3, 0), (1, 0))
    reference = jax.grad(lambda a: _reference([a, *arrays[1:]], counts, context, 0)[0].sum())
    np.testing.assert_allclose(gradient, reference(arrays[0]), rtol=1e-13)


def test_what_is_equal_is_traced_and_translated_once():
    """Whatever the stage of a step; what differs only by the type of a number is not equal."""
    arrays, counts, context = arguments(0, (70,))
    calls = []

    def record(*arguments):
        calls.append(arguments)
        return map_stencil(*arguments)

    def loss(arrays, factor):
        # A context that is made anew, as a law in each stage of a step.
        given = {**context, "factor": factor}
        once = map_faces(scaled_formula, arrays, counts, given, 0, record)
        again = [2 * x for x in arrays]
        twice = map_faces(scaled_formula, again, counts, given | {}, 0, record)
        return sum(jnp.sum(x) for x in (*once, *twice))

    lowered = jax.jit(jax.value_and_grad(loss), static_argnums=1).lower(arrays, 2)
    assert len(calls) == 2  # forward and back
    # And lowered once.
    assert lowered.as_text().count("stablehlo.custom_call @physkit") == 2
    assert len(calls) == 2
    assert loss(arrays, 2) == pytest.approx(loss(arrays, 2.0))
    assert len(calls) == 3


def scaled_formula(cells, context):
    return tuple(x * context["factor"] for x in formula(cells, context))


def test_what_cannot_be_translated_is_an_error():
    arrays, counts, context = arguments(0, (7,))
    with pytest.raises(NotTranslatableError, match="sin"):
        map_faces(lambda cells, _: (jnp.sin(cells[0][0]),), arrays, counts, context, 0, map_stencil)
    with pytest.raises(NotTranslatableError, match="many numbers"):
        map_faces(formula, arrays, counts, {**context, "bed": jnp.zeros(100)}, 0, map_stencil)


def _gas(grid, **options):
    rng = np.random.default_rng(2)
    density, pressure = (1 + 0.3 * jnp.asarray(rng.random(grid.shape)) for _ in range(2))
    velocity = jnp.asarray(rng.normal(size=(grid.dimension, *grid.shape)))
    return pk.components.Gas.from_primitive(grid, density, velocity, pressure, gamma=1.4, **options)


def _euler(dimension, **options):
    grid = pk.Grid(pk.Box((1.0,) * dimension), (9, 7, 5)[:dimension])
    return pk.equations.CompressibleEuler(1.4, **options), _gas(grid)


def _magnetized(dimension, **options):
    grid = pk.Grid(pk.Box((1.0,) * dimension), (8, 7, 6)[:dimension])
    rng = np.random.default_rng(3)
    density, pressure = (1 + 0.3 * jnp.asarray(rng.random(grid.shape)) for _ in range(2))
    velocity = tuple(jnp.asarray(rng.normal(size=(3, *grid.shape))))
    gas = pk.components.MagnetizedGas.from_primitive(
        grid, density, velocity, pressure, magnetic=(0.5, 0.3, 0.2), gamma=5 / 3
    )
    return pk.equations.IdealMHD(5 / 3, **options), gas


def _water(dimension=2, **options):
    grid = pk.Grid(pk.Box((1.0,) * dimension), (9, 7)[:dimension])
    rng = np.random.default_rng(4)
    depth = jnp.asarray(np.maximum(rng.normal(size=grid.shape), 0))
    velocity = tuple(jnp.asarray(rng.normal(size=(dimension, *grid.shape))))
    bed = jnp.asarray(rng.normal(size=grid.shape))
    state = pk.components.ShallowWaterState.of(grid, depth, velocity)
    return pk.equations.ShallowWaterFV(bed=bed, **options), state


LAWS = {
    "gas of first order": lambda: _euler(1, riemann=Rusanov(), reconstruction=PiecewiseConstant()),
    "gas on a line": lambda: _euler(1),
    "gas in the plane": lambda: _euler(2, riemann=HLLC(), reconstruction=MUSCL(Superbee())),
    "gas in space": lambda: _euler(3, riemann=HLL(), reconstruction=MUSCL(MonotonizedCentral())),
    "fifth order": lambda: _euler(2, reconstruction=WENO5()),
    "points": lambda: _euler(2, reconstruction=AWENO5(), riemann=Rusanov()),
    "Roe": lambda: _euler(2, riemann=Roe(), reconstruction=PiecewiseConstant()),
    "AUSM": lambda: _euler(2, riemann=AUSMPlus()),
    "exact": lambda: _euler(1, riemann=ExactRiemann()),
    "positive": lambda: _euler(2, keeps_positive=True),
    "viscous": lambda: _euler(2, viscosity=0.01, conductivity=0.02),
    "magnetized of first order": lambda: _magnetized(
        1, riemann=HLL(), reconstruction=PiecewiseConstant()
    ),
    "magnetized on a line": lambda: _magnetized(1),
    "magnetized in the plane": lambda: _magnetized(2),
    "magnetized in space": lambda: _magnetized(3, riemann=HLL(), reconstruction=WENO5()),
    "water on a line": lambda: _water(1),
    "water": lambda: _water(coriolis=0.1),
    "water, HLL": lambda: _water(coriolis=0.1, riemann=HLL(), dry=1e-3),
}


def rate_and_derivatives(law, state, kernel):
    numbers, rest = eqx.partition((law, state), eqx.is_inexact_array)
    rng = np.random.default_rng(5)
    dots = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), numbers)

    def rate(numbers):
        law, state = eqx.combine(numbers, rest)
        return jax.tree.leaves(law.rate(CLOCK, state))

    def loss(numbers):
        return sum(jnp.sum(jnp.cos(x)) for x in rate(numbers))

    def everything(numbers):
        return jax.jvp(rate, (numbers,), (dots,)), jax.grad(loss)(numbers)

    traced = jax.jit(everything).trace(numbers)
    return str(traced.jaxpr).count(f"{kernel}["), traced.lower().compile()(numbers)


# The smallest of each equation: the others take the same way, by functions that compile for longer.
QUICK = ("gas of first order", "magnetized of first order", "water on a line")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in LAWS]
)
def test_rates_and_their_derivatives_are_those_of_xla(name, monkeypatch):
    law, state = LAWS[name]()
    kernels, native = rate_and_derivatives(law, state, "ffi_call")
    monkeypatch.setenv("PHYSKIT_NATIVE", "0")
    none, by_xla = rate_and_derivatives(law, state, "ffi_call")
    assert none == 0
    # Its logarithms and powers are not translated.
    assert (kernels == 0) == (name == "exact")
    assert_alike(native, by_xla)


def test_what_is_not_translated_is_left_to_xla():
    law, state = LAWS["exact"]()
    assert "ffi_call[" not in str(jax.make_jaxpr(lambda s: law.rate(CLOCK, s))(state))


def assert_alike(found, expected):
    size = max(float(jnp.max(jnp.abs(x))) for x in jax.tree.leaves(expected))
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12 * size), found, expected
    )


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param("gas in the plane", jnp.float32, marks=SLOW),
        ("gas in the plane", jnp.float64),
        pytest.param("magnetized in the plane", jnp.float32, marks=SLOW),
        ("magnetized in the plane", jnp.float64),
        ("water", jnp.float32),
        pytest.param("water", jnp.float64, marks=SLOW),
    ],
)
def test_rates_and_cotangents_are_vector_instructions(name, dtype, monkeypatch):
    compiler = _compiler.c_compiler()
    if platform.machine() != "x86_64" or compiler is None or "clang" in compiler[0]:
        pytest.skip("looks at what GCC makes for processors with AVX2")
    sources, load = [], _map_stencil.load_handler

    def record(code, *arguments):
        sources.append(code)
        return load(code, *arguments)

    monkeypatch.setattr(_map_stencil, "load_handler", record)
    jax.clear_caches()  # of tests before this one, whose code is not compiled again
    law, state = cast_floats(LAWS[name](), dtype)
    clock = cast_floats(CLOCK, dtype)
    numbers, rest = eqx.partition((law, state), eqx.is_inexact_array)

    def loss(numbers):
        law, state = eqx.combine(numbers, rest)
        return sum(jnp.sum(x) for x in jax.tree.leaves(law.rate(clock, state)))

    jax.eval_shape(jax.grad(loss), numbers)
    letter = "s" if dtype == jnp.float32 else "d"
    command = [*compiler, *_compiler._OPTIONS, *_compiler._OPTIONS_FOR_LONG_CODE]
    command += ["-ffp-contract=off", "-march=x86-64-v3"]
    command += ["-fno-trapping-math", f"-I{jax.ffi.include_dir()}", "-S", "-x", "c", "-", "-o", "-"]
    assert sources
    for code in {sources[0], sources[-1]}:
        done = subprocess.run(command, input=code, capture_output=True, text=True, check=True)
        assert re.search(rf"\bvdivp{letter}\s", done.stdout)


def test_gradients_in_a_users_shard_map():
    law, state = _euler(1)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",))
    each, same = jax.sharding.PartitionSpec("d"), jax.sharding.PartitionSpec()

    def loss(factor, gamma):
        gas = eqx.tree_at(lambda s: s.density.data, state, factor * state.density.data)
        own = eqx.tree_at(lambda law: law.gamma, law, gamma)
        return sum(jnp.sum(jnp.cos(x)) for x in jax.tree.leaves(own.rate(CLOCK, gas)))

    gradients = jax.vmap(jax.grad(loss, (0, 1)), (0, None))
    arguments = jnp.asarray([1.0, 1.1]), jnp.asarray(1.4)
    sharded = jax.shard_map(gradients, mesh=mesh, in_specs=(each, same), out_specs=each)
    traced = [jax.jit(f).trace(*arguments) for f in (sharded, gradients)]
    in_mesh, alone = (str(t.jaxpr).count("ffi_call[") for t in traced)
    assert in_mesh == alone == 1  # the way back
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-10),
        *(t.lower().compile()(*arguments) for t in traced),
    )
