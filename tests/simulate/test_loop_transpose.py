"""Sums for the cotangents of what no step changes are taken after the loop, and few numbers computed before it;
derivatives stay what they are."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import called_program, linear_call, programs_of
from physkit.simulate.adjoint._adjoint import Direct
from physkit.simulate.adjoint._nested_checkpoint import NestedCheckpoint

packing = importlib.import_module("physkit.simulate.adjoint.packing._packed_step")
STEPS, SHAPE = 6, (20, 30)


@pytest.fixture(autouse=True)
def on_a_gpu(monkeypatch):
    """As where there is one."""
    monkeypatch.setattr(packing, "kernels_are_used", lambda: True)


def diffuse(p, carry):
    """A parameter that is used in two places, after functions of it; no other is a number."""
    x, given = carry
    spread = jnp.exp(p["a"]) / p["b"] * (jnp.roll(x, 1, 0) - x)
    return x + 0.1 * (spread - p["b"] * x * given), given


def in_profiles(p, carry):
    """Of parameters along lines of cells, for each component of a vector, and of parts of one."""
    x, given = carry
    lines = p["v"][:, None] * jnp.sin(x)
    vector = jnp.stack([x, x**2]) * p["w"][:, None, None]
    return 0.9 * x + 0.1 * (lines + vector[0] * vector[1] + p["v"][3] * x), given


def times_the_state(p, carry):
    """A sum that is multiplied with what steps change cannot wait; nor one for the state itself."""
    x, given = carry
    factor = p["a"] * jnp.mean(x)
    return x + 0.1 * factor * jnp.cos(x), given


def by_choice(p, carry):
    """Within choices and loops."""
    x, given = carry
    chosen = jax.lax.cond(x[0, 0] > 0, lambda y: p["a"] * y, lambda y: p["b"] * y, x)
    turn = lambda k, y: 0.5 * y + 0.1 * p["a"] * x
    return 0.5 * jax.lax.fori_loop(0, 2, turn, chosen) * given, given


def push(p, carry):
    """A cotangent itself is what is added up."""
    x, given = carry
    return x + p["a"], given


def in_spectra(p, carry):
    """Complex numbers, whose parts the cotangents of real parameters are."""
    x, given = carry
    spectrum = jnp.fft.rfft2(x)
    phase = jax.lax.complex(jnp.cos(p["a"]), jnp.sin(p["a"]))
    rates = jax.lax.complex(jnp.zeros_like(p["v"]), p["v"] * p["b"])
    turned = spectrum * phase + rates[:, None] * spectrum
    return 0.5 * x + 0.1 * jnp.fft.irfft2(turned, s=x.shape), given


def behind_a_barrier(p, carry):
    """What a sum is multiplied with is one of the results of an operation, of which another is a cotangent."""
    x, given = carry

    def add_scaled(factor, linear):
        y, a = linear
        return y + factor * a

    def transpose(factor, cotangent):
        factor, cotangent = jax.lax.optimization_barrier((factor, cotangent))
        return cotangent, factor * jnp.sum(cotangent)

    return linear_call(add_scaled, transpose, jnp.exp(p["b"]), (0.9 * x, p["a"])), given


def computed_again(p, carry):
    """Functions of parameters are computed again on the way back, some of them by choice of the platform."""

    def step(p, x, given):
        chosen = jax.lax.platform_dependent(p["b"] * x, cpu=jnp.sin, default=lambda y: y)
        return x + 0.1 * jnp.exp(p["a"]) * jnp.sin(chosen) * jnp.exp(p["v"])[:, None], given

    return jax.checkpoint(step, prevent_cse=False)(p, *carry)


def around_a_center(p, carry):
    """Sums of sums: coordinates along both axes depend on the same numbers, which move."""
    x, given = carry
    rows, columns = (jnp.linspace(0.0, 1.0, n) for n in x.shape)
    center = p["w"] + p["a"] * x[0, 0]
    across = (columns - center[1])[None]
    distance = jnp.sqrt(1 + (rows - center[0])[:, None] ** 2 + across**2)
    return x + 0.1 * distance * jnp.sin(x + p["b"] * across), given


STEPS_OF = {
    f.__name__: f
    for f in (
        push, diffuse, in_profiles, in_spectra, times_the_state, by_choice, behind_a_barrier, computed_again,
        around_a_center,
    )
}  # fmt: skip


def loss_of(step, pack, adjoint=None):
    def loss(p, x):
        turn = lambda carry, _=None: (step(p, carry), {})
        turn = packing.pack_step(turn) if pack else turn
        start = x, 1.0 + 0 * p["a"] + 0.1 * p["b"]
        return jnp.sum((adjoint or Direct()).repeat(turn, start, STEPS)[0][0] ** 2)

    return loss


def parameters(dtype=np.float64):
    rng = np.random.default_rng(0)
    p = {"a": 0.3, "b": 1.2, "v": rng.normal(size=SHAPE[0]), "w": np.array([0.2, 0.4])}
    x = np.sin(np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE))
    return jax.tree.map(lambda x: jnp.asarray(x, dtype), (p, x))


@pytest.mark.parametrize("name", STEPS_OF)
def test_derivatives_of_all_kinds_are_those_of_plain_steps(name):
    arguments = parameters()
    plain, packed = (loss_of(STEPS_OF[name], pack) for pack in (False, True))

    def derivatives(f):
        directions = jax.tree.map(jnp.cos, arguments)
        gradient = jax.grad(f, (0, 1))
        both = lambda scale: gradient(*jax.tree.map(lambda x: scale * x, arguments))
        along = lambda *arguments: jax.jvp(f, arguments, directions)[1]
        return (
            # Reverse over forward, and the third derivative over it.
            jax.jvp(jax.grad(along, (0, 1)), arguments, directions),
            jax.value_and_grad(f, (0, 1))(*arguments),
            jax.jvp(f, arguments, directions),
            jax.jvp(gradient, arguments, directions),
            jax.vmap(both)(jnp.array([0.5, 1.0])),
        )

    # Compiled: XLA's barriers have no rule for batches of JAX 0.10 outside of a program.
    found, expected = (jax.jit(derivatives, static_argnums=0)(f) for f in (packed, plain))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * (1e-30 + np.max(np.abs(b))))


def test_single_precision_and_checkpoints():
    plain = loss_of(diffuse, pack=False)
    expected = jax.grad(plain)(*parameters())
    for adjoint in (Direct(), NestedCheckpoint(max_unsplit=2)):
        found = jax.grad(loss_of(diffuse, pack=True, adjoint=adjoint))(*parameters(np.float32))
        for key in ("a", "b"):
            assert found[key].dtype == np.float32
            np.testing.assert_allclose(found[key], expected[key], rtol=1e-5)


def operations_within_loops(step, shape=SHAPE):
    """Those of all loops of a gradient."""
    p, _ = parameters()
    jaxpr = jax.make_jaxpr(jax.grad(loss_of(step, pack=True)))(p, jnp.ones(shape)).jaxpr

    def within(jaxpr, is_loop):
        for equation in jaxpr.eqns:
            if is_loop:
                yield equation
            called = called_program(equation)
            for inner in [called[0]] if called else programs_of(equation):
                yield from within(inner, is_loop or equation.primitive.name == "scan")

    return list(within(jaxpr, False))


def sums_within_loops(step):
    """How many numbers sums in the loop back add up."""
    operations = operations_within_loops(step)
    sizes = [
        e.invars[0].aval.size for e in operations if e.primitive.name in ("reduce", "reduce_sum")
    ]
    return [size for size in sizes if size >= SHAPE[1]]


def test_no_turn_adds_up_cells_for_what_no_step_changes():
    assert sums_within_loops(diffuse) == []
    assert sums_within_loops(in_profiles) == []
    assert sums_within_loops(in_spectra) == []


def test_sums_that_cannot_wait_are_within_turns():
    assert sums_within_loops(times_the_state) != []


def test_sums_of_large_arrays_are_within_turns(monkeypatch):
    module = importlib.import_module("physkit.simulate.adjoint.packing._loop_transpose")
    monkeypatch.setattr(module, "_MAX_BYTES", 8 * SHAPE[0] * SHAPE[1] - 1)
    assert sums_within_loops(diffuse) != []


def test_numbers_that_no_step_changes_are_computed_once():
    assert "exp" not in {e.primitive.name for e in operations_within_loops(computed_again)}


def test_turns_read_few_numbers_from_one_array():
    """Of the loop and of the loop back: kernels that read the same array can be one."""
    operations = operations_within_loops(diffuse)
    barriers = [e for e in operations if e.primitive.name == "optimization_barrier"]
    joined = [e.invars[0].aval for e in barriers]
    assert len(joined) == 2
    assert all(x.ndim == 1 and 1 < x.size <= 8 for x in joined)


def test_what_kernels_read_is_not_one_of_several_numbers():
    def with_a_loop(p, carry):
        x, given = carry
        turned = jax.lax.fori_loop(0, 2, lambda k, y: y - 0.1 * p["a"] * y, x)
        return 0.5 * turned + p["b"] * x * given, given

    operations = operations_within_loops(with_a_loop)
    inner = [e for e in operations if e.primitive.name in ("scan", "while")]
    numbers = [x for e in inner for x in e.invars if not hasattr(x, "val")]
    numbers = [x for x in numbers if x.aval.size == 1 and x.aval.dtype == np.float64]
    made = {x for e in operations for x in e.outvars}
    assert numbers
    assert not any(x in made for x in numbers)
