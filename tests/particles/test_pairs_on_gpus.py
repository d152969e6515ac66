"""Sums over pairs by one kernel for GPUs, evaluated by XLA's interpreter, are those of XLA."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Clock, StepCount, cast_floats
from physkit.geometry import Box, Triclinic
from physkit.native import NotTranslatableError, Tiling, sum_on_gpus
from physkit.particles import Particles
from physkit.particles.forces import DirectGravity, Pairwise, pair_sum
from physkit.particles.forces.pairs import _reduce_pairs
from physkit.particles.forces.potentials import (
    WCA,
    Buckingham,
    Coulomb,
    DampedCoulomb,
    LennardJones,
    Morse,
    NeuralPair,
    ReactionField,
    SoftCoreLennardJones,
    SoftSphere,
    Yukawa,
)
from physkit.particles.neighbors import AllPairs, ListedPairs

# Interpreted kernels, each with its derivatives.
pytestmark = pytest.mark.compiled_quickly

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
TABLE = np.array([[1.0, 0.6], [0.6, 1.3]])
POTENTIALS = {
    "lennard_jones": lambda: LennardJones(1.3, 0.9),
    "species": lambda: LennardJones(TABLE, 0.9),
    "wca": lambda: WCA(1.3, TABLE),
    "morse": lambda: Morse(1.2, 1.1, 2.0),
    "buckingham": lambda: Buckingham(1000.0, 0.2, 2.0),
    "yukawa": lambda: Yukawa(1.5, 0.7),
    "soft_core": lambda: SoftCoreLennardJones(TABLE, 0.9, 0.6),
    "soft_sphere": lambda: SoftSphere(1.0, 0.9, 9.0),
    "coulomb": lambda: Coulomb(1.4),
    "damped_coulomb": lambda: DampedCoulomb(0.8, 1.4),
    "reaction_field": lambda: ReactionField(1.7, 7.0, 1.4),
}
# The others are a part of `make test-all`.
FAST = ("species",)


@pytest.fixture
def by_kernel(monkeypatch):
    """A function as it is with kernels, by the interpreter; how many sums were kernels is in `.count`."""

    def wrap(function, tiling=None):
        @functools.wraps(function)
        def evaluate(*arguments):
            jax.clear_caches()
            with monkeypatch.context() as patch:
                patch.setattr(_reduce_pairs, "native_or_xla", _cuda)
                patch.setattr(_reduce_pairs, "sum_on_gpus", count)
                results = function(*arguments)
            jax.clear_caches()
            return results

        def count(*arguments):
            sums = sum_on_gpus(*arguments, tiling=tiling, interpret=True)
            wrap.count += 1
            return sums

        return evaluate

    wrap.count = 0
    return wrap


def _cuda(native, by_xla, *arrays, cuda):
    return cuda(*arrays)


@pytest.fixture(autouse=True)
def without_native_code(monkeypatch):
    monkeypatch.setenv("PHYSKIT_NATIVE", "0")


def _particles(n=64, dtype=jnp.float64, space=None):
    """Distorted cubes, two species, with charges."""
    side = round(n ** (1 / 3))
    choose = np.random.default_rng(0)
    sites = np.stack(np.meshgrid(*[np.arange(side)] * 3), -1).reshape(-1, 3) * 1.2
    sites += choose.normal(scale=0.05, size=sites.shape)
    return Particles(
        jnp.asarray(sites, dtype),
        space=Box([1.2 * side] * 3) if space is None else space,
        charge=jnp.asarray(choose.normal(size=len(sites)), dtype),
        species=jnp.asarray(choose.integers(0, 2, len(sites)), jnp.int32),
    )


def _assert_close(got, expected, dtype=np.float64):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        tolerance = 1e-11 if dtype == np.float64 else 1e-4
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * float(np.abs(b).max()))


@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in POTENTIALS]
)
def test_potentials(name, by_kernel):
    particles = _particles()
    truncation = "plain" if name == "reaction_field" else "shifted-force"
    force = Pairwise(POTENTIALS[name](), 1.7, truncation=truncation, skin=0.1)

    @jax.jit
    def evaluate(force, particles):
        return force.force(CLOCK, particles), force.energy(CLOCK, particles)

    expected = evaluate(force, particles)
    _assert_close(by_kernel(evaluate)(force, particles), expected)
    assert by_kernel.count == 2


def test_a_network_is_left_to_xla(by_kernel):
    network = eqx.nn.MLP("scalar", "scalar", 4, 1, activation=jnp.tanh, key=jax.random.key(0))
    particles, force = _particles(), Pairwise(NeuralPair(network), 1.7, skin=0.1)
    evaluate = eqx.filter_jit(lambda force, particles: force.force(CLOCK, particles))
    _assert_close(by_kernel(evaluate)(force, particles), evaluate(force, particles))
    assert by_kernel.count == 0


TILTED = Triclinic([[4.8, 0, 0], [0.5, 4.8, 0], [-0.4, 0.3, 4.8]])


@pytest.mark.parametrize(
    ("dtype", "space"),
    [pytest.param(np.float32, None, marks=pytest.mark.slow), (np.float64, TILTED)],
    ids=["box", "tilted"],
)
def test_gradient(dtype, space, by_kernel):
    force, particles = cast_floats(
        (Pairwise(LennardJones(TABLE, 0.9), 1.7, skin=0.1), _particles(space=space)), dtype
    )
    varying, fixed = eqx.partition((force, particles), eqx.is_inexact_array)

    @jax.jit
    def evaluate(varying):
        def loss(varying):
            force, particles = eqx.combine(varying, fixed)
            return jnp.sum(jnp.sin(force.force(CLOCK, particles)))

        return jax.value_and_grad(loss)(varying)[1][1].position

    expected = evaluate(varying)
    _assert_close(by_kernel(evaluate)(varying), expected, dtype)
    assert by_kernel.count >= 2


@pytest.mark.parametrize(("n", "dtype"), [(130, np.float32), (47, np.float64)])
def test_gravity(n, dtype, by_kernel):
    choose = np.random.default_rng(1)
    bodies = Particles(
        jnp.asarray(choose.normal(size=(n, 3)), dtype),
        mass=jnp.asarray(choose.uniform(1, 2, n), dtype),
    )
    force = cast_floats(DirectGravity(softening=0.05), dtype)

    @jax.jit
    def evaluate(bodies):
        slope = jax.grad(lambda m: jnp.sum(force.force(CLOCK, bodies.replace(mass=m)) ** 2))
        return force.force(CLOCK, bodies), force.energy(CLOCK, bodies), slope(bodies.mass)

    expected = evaluate(bodies)
    _assert_close(by_kernel(evaluate)(bodies), expected, dtype)
    assert by_kernel.count >= 3


def _kernel(i, j, context, present):
    """Of vectors, flags and a table: neither even nor odd."""
    d = i["x"] - j["x"]
    square = jnp.where(present, jnp.sum(d * d, -1), 1)
    strength = context["table"][i["kind"], j["kind"]] / (context["scale"] + square)
    strength = jnp.where(present & j["flag"], strength * j["mass"], 0)
    return {"force": strength[..., None] * d, "energy": strength}


def _case(n, k, num_local, dtype):
    choose = np.random.default_rng(2)
    index = np.minimum(choose.integers(0, n + n // 4, (n, k)), n)
    index[3] = n  # no partners
    place = jnp.arange(n, dtype=jnp.int32)
    rows = jnp.concatenate(
        [place[:num_local][::-1], place[n if num_local is None else num_local :]]
    )
    pairs = ListedPairs(
        jnp.asarray(index, jnp.int32),
        place[::-1],
        rows,
        jnp.int32(k),
        jnp.array(False),
        particle_of_row=rows,
        num_local=num_local,
    )
    particles = {
        "x": jnp.asarray(choose.normal(size=(n, 3)), dtype),
        "kind": jnp.asarray(choose.integers(0, 3, n), jnp.int32),
        "flag": jnp.asarray(choose.integers(0, 2, n), bool),
        "mass": jnp.asarray(choose.uniform(1, 2, n), dtype),
    }
    table = jnp.asarray(choose.normal(size=(3, 3)), dtype)
    return particles, {"table": table, "scale": jnp.asarray(0.7, dtype)}, pairs


SIZES = [
    (70, 23, None, (16, 16, 4, True)),
    (70, 23, 41, (32, 8)),
    (33, 64, 5, (4, 32)),
    (1030, 1, None, (64, 1)),
]


@pytest.mark.parametrize(("n", "k", "num_local", "tiling"), SIZES)
def test_rows_and_columns_that_tiles_do_not_divide(n, k, num_local, tiling, by_kernel):
    particles, context, pairs = _case(n, k, num_local, np.float64)

    @jax.jit
    def evaluate(particles, context):
        with jax.numpy_rank_promotion("allow"):
            return pair_sum(_kernel, particles, context, pairs, None)

    expected = evaluate(particles, context)
    _assert_close(by_kernel(evaluate, Tiling(*tiling))(particles, context), expected)


def test_batches_and_tangents(by_kernel):
    particles, context, _ = _case(40, 30, None, np.float64)
    x, shift = particles["x"], jnp.linspace(0, 1, 6).reshape(2, 3)[..., None, None]
    scale, scales = context["scale"], jnp.asarray([0.5, 0.9])

    def sums(x, scale):
        with jax.numpy_rank_promotion("allow"):
            total = pair_sum(
                _kernel, particles | {"x": x}, context | {"scale": scale}, AllPairs(), None
            )
        return total["force"]

    @jax.jit
    def evaluate(x, scale):
        xs = x[None, None] + shift * jnp.sin(x)[None, None]
        twice = jax.vmap(jax.vmap(sums, (0, None)))(xs, scales)
        _, tangent = jax.jvp(sums, (x, scale), (jnp.cos(x), scale))
        rows = jax.vmap(jax.grad(lambda y: jnp.sum(sums(y, scale) ** 2)))(xs[0])
        return twice, tangent, rows

    expected = evaluate(x, scale)
    _assert_close(by_kernel(evaluate)(x, scale), expected)
    assert by_kernel.count >= 3


def test_sums_do_not_depend_on_the_batch(by_kernel):
    particles, context, pairs = _case(70, 23, None, np.float32)

    def sums(x):
        with jax.numpy_rank_promotion("allow"):
            return pair_sum(_kernel, particles | {"x": x}, context, pairs, None)["force"]

    x = particles["x"]
    alone = by_kernel(jax.jit(sums))(x)
    together = by_kernel(jax.jit(jax.vmap(sums)))(jnp.stack([x, 2 * x]))
    np.testing.assert_array_equal(together[0], alone)


def test_what_no_kernel_has():
    particles, context, _ = _case(40, 30, None, np.float64)

    def sums(kernel, exact=False):
        return sum_on_gpus(kernel, particles, particles, context, None, exact, interpret=True)

    for kernel in (
        lambda i, j, context, present: jnp.cumsum(i["x"] * j["x"], -1),
        lambda i, j, context, present: i["kind"] + j["kind"],
        lambda i, j, context, present: jax.lax.bessel_i1e(j["mass"]),
    ):
        with pytest.raises(NotTranslatableError):
            sums(kernel)
    with pytest.raises(NotTranslatableError, match="rounded one by one"):
        sums(_kernel, exact=True)
