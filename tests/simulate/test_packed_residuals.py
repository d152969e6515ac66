"""Steps whose derivative keeps one array: the same numbers in both modes, and few arrays, on any device."""

import functools
import importlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ArrayLayout, programs_of
from physkit.parallel import Spmd
from physkit.simulate.adjoint._adjoint import Direct
from physkit.simulate.loop._advance import make_block_body
from physkit.simulate.loop._packed_scalars import pack_scalars
from physkit.systems import (
    acoustic_monopole,
    cylinder_in_channel,
    dielectric_slab,
    figure_eight,
    kelvin_helmholtz,
    kuramoto_sivashinsky,
    lattice_cavity,
    lennard_jones_melt,
    particle_mesh_universe,
    stommel_gyre,
    weibel_instability,
)

packing = importlib.import_module("physkit.simulate.adjoint.packing._packed_step")
kept_arrays = importlib.import_module("physkit.simulate.adjoint.packing._kept_arrays")
STEPS = 6


@pytest.fixture(autouse=True)
def on_a_gpu(monkeypatch):
    """As where there is one."""
    monkeypatch.setattr(packing, "kernels_are_used", lambda: True)


def brownian():
    trap = pk.HarmonicTrap(2.0, center=[0.0, 0.0])
    particles = pk.Particles(jnp.ones((5, 2)), velocity=jnp.zeros((5, 2)))
    return pk.Simulation(pk.BAOAB(trap, temperature=1.0, friction=1.0), dt=0.05), particles


SYSTEMS = {
    "noise": brownian,
    "lists": lambda: lennard_jones_melt(cells=4),
    "stages": figure_eight,
    "spectra": lambda: kuramoto_sivashinsky(cells=32),
    "faces": lambda: kelvin_helmholtz(cells=8),
    "grid and particles": lambda: weibel_instability(cells=8, per_cell=1),
    "lattice": lambda: lattice_cavity(cells=8),
    "staggered": lambda: stommel_gyre(cells=8),
    "solid": lambda: cylinder_in_channel(cells=16),
    "light": lambda: dielectric_slab(cells=16),
    "sound": lambda: acoustic_monopole(cells=16),
    "universe": lambda: particle_mesh_universe(cells=4),
}

FAST = ("noise", "stages", "spectra")


def loss_of(name, prepare_step):
    """A loss of all numbers of a simulation and its start, and these numbers."""
    sim, state = SYSTEMS[name]()
    sim = eqx.tree_at(lambda s: s.observers, sim, ())
    carry = pk.init(sim, state, key=jax.random.key(3))
    numbers, rest = eqx.partition((sim, carry), eqx.is_inexact_array)

    def loss(numbers):
        sim, carry = eqx.combine(numbers, rest)
        plan = sim.integrator.prepare(carry.state, sim.dt)
        block = make_block_body((), Direct(), pack_scalars((sim, plan)), prepare_step)
        end = Direct().repeat(block, carry, STEPS)[0].state
        leaves = [x for x in jax.tree.leaves(end) if eqx.is_inexact_array(x)]
        return sum(jnp.sum(jnp.abs(x) ** 2) for x in leaves)

    return loss, numbers


@pytest.mark.parametrize("least_gain", [1 / 3, pytest.param(0.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in SYSTEMS]
)
def test_derivatives_are_those_of_plain_steps(name, least_gain, monkeypatch):
    if least_gain == 0:  # whatever can be computed again is
        monkeypatch.setattr(kept_arrays, "_LEAST_BYTES", 0)
        monkeypatch.setattr(kept_arrays, "_LEAST_GAIN", 0.0)
    plain, numbers = loss_of(name, lambda step: step)
    packed, _ = loss_of(name, packing.pack_step)
    directions = jax.tree.map(
        lambda x: jnp.cos(jnp.arange(x.size)).reshape(x.shape).astype(x.dtype), numbers
    )
    both = jax.jit(
        lambda f, x: (jax.value_and_grad(f)(x), jax.jvp(f, (x,), (directions,))), static_argnums=0
    )
    expected, found = both(plain, numbers), both(packed, numbers)
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(
            b, a, rtol=1e-9, atol=1e-9 * (1e-30 + np.max(np.abs(a), initial=0.0))
        )


def stored_arrays(loss, numbers):
    """Shapes of what the loop forward stacks, of the longest loop."""
    jaxpr = jax.make_jaxpr(jax.grad(loss))(numbers).jaxpr
    loops = [e for e in jaxpr.eqns if e.primitive.name == "scan"]
    return [x.aval for x in loops[0].outvars if x.aval.shape[:1] == (STEPS,)]


def test_a_loop_stores_one_array_and_not_what_no_step_changes():
    plain = stored_arrays(*loss_of("spectra", lambda step: step))
    packed = stored_arrays(*loss_of("spectra", packing.pack_step))
    assert len(packed) <= 3 < len(plain)  # one of each dtype
    size = lambda avals: sum(x.size * x.dtype.itemsize for x in avals)
    assert size(packed) < 1.1 * size(plain)


def repeat(step, x, length=STEPS):
    return Direct().repeat(packing.pack_step(step), x, length)[0]


def repeat_alone(step, x, length=STEPS):
    """As within other loops than physkit's."""
    return jax.lax.scan(packing.pack_step(step), x, None, length=length)[0]


@pytest.mark.parametrize("repeat", [repeat, repeat_alone])
def test_second_derivatives_batches_and_single_precision(repeat):
    step = lambda x, _=None: (jnp.sin(x) * x, None)
    plain = lambda x: jax.lax.scan(step, x, None, length=STEPS)[0]
    for dtype in (np.float32, np.float64):
        x = np.linspace(0.3, 1.0, 4).astype(dtype)
        for of in (jax.hessian, jax.jacfwd, jax.jacrev):
            expected = of(lambda x: jnp.sum(plain(x)))(x)
            found = of(lambda x: jnp.sum(repeat(step, x)))(x)
            np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
        batched = jax.vmap(jax.grad(functools.partial(repeat, step)))(x)
        np.testing.assert_allclose(batched, jax.vmap(jax.grad(plain))(x), rtol=1e-5)


@pytest.mark.parametrize("repeat", [repeat, repeat_alone])
def test_what_has_no_derivative_gets_none(repeat):
    """Whole numbers, what is only handed on, and what a derivative does not go through."""

    def step(carry, _rows=None):
        count, given, _, x = carry
        return (count + 1, given, jax.lax.stop_gradient(x), x * given), None

    start = jnp.zeros((), jnp.int32), jnp.float64(1.5), jnp.ones(2), jnp.ones(2)
    jaxpr = jax.make_jaxpr(jax.grad(lambda x: jnp.sum(repeat(step, (*start[:3], x))[3])))(start[3])
    _, backward = [e for e in jaxpr.jaxpr.eqns if e.primitive.name == "scan"]
    assert len([x for x in backward.outvars if x.aval.shape == (2,)]) == 1, backward
    gradient = jax.grad(lambda x: jnp.sum(repeat(step, (*start[:3], x))[3]))(start[3])
    np.testing.assert_allclose(gradient, 1.5**STEPS)


@pytest.mark.parametrize("repeat", [repeat, repeat_alone])
def test_a_derivative_for_reverse_mode_only_is_left_as_it_is(repeat):
    @jax.custom_vjp
    def double(x):
        return 2 * x

    double.defvjp(lambda x: (2 * x, None), lambda _, g: (3 * g,))
    step = lambda x, _=None: (double(x), None)
    np.testing.assert_allclose(jax.grad(functools.partial(repeat, step))(1.0), 3.0**STEPS)


@pytest.mark.parametrize("backend", ["vmap", "serial"])
def test_steps_that_talk_to_other_devices_are_left_as_they_are(backend):
    shape = (2,) if backend == "vmap" else (1,)

    def total(comm, x):
        return repeat(lambda x, _=None: (comm.psum(jnp.sin(x)), None), x, 2)

    x = jnp.arange(1.0, 1 + shape[0])
    gradient = jax.grad(lambda x: Spmd(total, shape, backend=backend)(x)[0])(x)
    expected = jax.grad(lambda x: shape[0] * jnp.sin(jnp.sum(jnp.sin(x))))(x)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)


def test_turns_of_loops_within_a_step_are_packed_too():
    def turn(carry, row):
        given, x, y = carry
        return (given, jnp.sin(x) * jnp.tanh(y) + row, jnp.cos(x * y) * given / jnp.cosh(y)), x

    def step(carry, _=None):
        carry, rows = jax.jit(lambda c: jax.lax.scan(turn, c, jnp.linspace(0.1, 0.5, 3)))(carry)
        return (carry[0], carry[1] + jnp.sum(rows), carry[2]), None

    plain = lambda x: jax.lax.scan(step, (1.5, x, 2 * x), None, length=STEPS)[0]
    packed = lambda x: repeat(step, (1.5, x, 2 * x))
    of = lambda f: jax.value_and_grad(lambda x: jnp.sum(f(x)[1] * f(x)[2]))
    x = jnp.linspace(0.3, 1.0, 4)
    for found, expected in zip(of(packed)(x), of(plain)(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(
        jax.hessian(lambda x: jnp.sum(packed(x)[2]))(x),
        jax.hessian(lambda x: jnp.sum(plain(x)[2]))(x),
        rtol=1e-11,
    )
    assert most_stacked(packed, x) <= 2 < most_stacked(plain, x)


def test_small_arrays_of_a_tree_with_functions_are_one_vector():
    """A compiled function is a leaf of a component that holds it."""
    tree = {"f": jax.jit(jnp.sin), "a": jnp.float32(1.5), "n": jnp.arange(3), "b": jnp.ones((2, 2))}
    found = pack_scalars(tree)()
    assert found["f"] is tree["f"]
    for name in ("a", "n", "b"):
        np.testing.assert_array_equal(found[name], tree[name], strict=True)


def test_bits_of_whole_numbers_travel_with_single_precision():
    arrays = [jnp.float32([0.5, -0.0]), jnp.int32([-1, 2**31 - 1]), jnp.array([True, False])]
    arrays += [jnp.uint32([2**32 - 1]), jnp.arange(200), jnp.float64(0.1)]
    layout = ArrayLayout.of(arrays, ["all"] * len(arrays))
    joined, alone = jax.jit(layout.join)(arrays)
    assert ([x.dtype.name for x in joined], alone) == (["float32", "int64", "float64"], [])
    for found, expected in zip(jax.jit(layout.split)((joined, alone)), arrays, strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)


def most_stacked(function, x):
    """How many arrays a loop of three turns within a derivative stacks at most."""

    def counts(jaxpr):
        for equation in jaxpr.eqns:
            if equation.primitive.name == "scan" and equation.params["length"] == 3:
                yield sum(y.aval.shape[:1] == (3,) for y in equation.outvars)
            for inner in programs_of(equation):
                yield from counts(inner)

    return max(counts(jax.make_jaxpr(jax.grad(lambda x: jnp.sum(function(x)[2])))(x).jaxpr))


def test_steps_under_shard_map_that_keeps_account_of_what_differs():
    """Of a parameter that all devices have in common, and of one that a step changes in the same way on all."""

    def loss(parameter, x):
        def step(carry, _=None):
            x, factor = carry
            return (x + parameter * jnp.sin(x) * factor, factor * parameter), {}

        step = packing.pack_step(step)
        return jnp.sum(Direct().repeat(step, (x, jnp.float64(0.5)), STEPS)[0][0] ** 2)

    gradient = jax.grad(loss, (0, 1))
    spec, axes = jax.sharding.PartitionSpec, (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((1,), ("devices",), axis_types=axes)
    specs = spec(), spec("devices")
    on_devices = jax.shard_map(gradient, mesh=mesh, in_specs=specs, out_specs=specs)
    arguments = jnp.float64(0.3), jnp.linspace(0.0, 1.0, 20)
    for found, expected in zip(on_devices(*arguments), gradient(*arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
