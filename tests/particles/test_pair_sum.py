"""The derivative rule of pair sums: equal to plain differentiation, without scatter, in one block's memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.native import native_code_is_used
from physkit.particles.forces import direct_sum, exact_pair_sum, pair_sum
from physkit.particles.forces.pairs._sum_of_partners import sum_of_partners
from physkit.particles.neighbors import AllPairs, ListedPairs, _pairs

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_agrees_with_plain_differentiation[listed-uneven-value]",
    "test_agrees_with_plain_differentiation[listed-uneven-vmap of vjp]",
    "test_agrees_with_plain_differentiation[listed-uneven-many tangents]",
    "test_agrees_with_plain_differentiation[every-uneven-jvp]",
    "test_agrees_with_plain_differentiation[every-uneven-grad of vmap]",
    "test_agrees_with_plain_differentiation[every-uneven-tangent of many]",
    "test_agrees_with_plain_differentiation[no parity-one-vjp]",
    "test_agrees_with_plain_differentiation[no parity-one-forward over reverse]",
    "test_agrees_with_plain_differentiation[no parity-one-gradient through many]",
    "test_nothing_scatters[forward over reverse]",
    "test_all_components_are_summed_in_one_loop[vjp]",
    "test_sums_of_several_terms_under_vmap",
    "test_blocks_cover_every_row_once",
    "test_a_box_that_blocks_do_not_divide",
    "test_order_of_particles_does_not_matter[float64]",
    "test_out_of_range_is_reported_and_poisons[float32]",
    "test_sums_over_few_pairs_are_left_to_xla[5-False]",
    "test_sums_over_few_pairs_are_left_to_xla[40-True]",
)

N = 41


def kernel(own, other, shared, present):
    """A short-ranged force between charges; odd when i and j are exchanged."""
    d = [a - b for a, b in zip(own["x"], other["x"], strict=True)]
    r2 = sum(x * x for x in d)
    inside = present & (r2 < 2.0)
    size = own["charge"] * other["charge"] * jnp.exp(-jnp.where(inside, r2, 1.0) / shared["range"])
    strength = jnp.where(inside, shared["depth"] * size, 0.0)
    return tuple(strength * x for x in d)


@pytest.fixture
def set_block_size(monkeypatch):
    """Sets the number of pairs of a block. What was traced with another one is dropped, before and after."""

    def set_size(pairs):
        monkeypatch.setattr(_pairs, "PAIRS_PER_BLOCK", pairs)
        jax.clear_caches()

    yield set_size
    jax.clear_caches()


@pytest.fixture(scope="module")
def case():
    generator = np.random.default_rng(0)
    x, charge = jnp.asarray(generator.normal(size=(N, 3))), jnp.asarray(generator.normal(size=N))
    shared = {"depth": jnp.asarray(1.3), "range": jnp.asarray(0.8)}
    distance2 = ((np.asarray(x)[:, None] - np.asarray(x)[None]) ** 2).sum(-1)
    order = generator.permutation(N)
    close = ((distance2 < 2.5) & ~np.eye(N, dtype=bool))[order][:, order]
    index = np.full((N, close.sum(1).max() + 1), N)
    for i, row in enumerate(close):
        index[i, : row.sum()] = np.flatnonzero(row)
    arrays = (jnp.asarray(a, jnp.int32) for a in (index, order, np.argsort(order)))
    listed = ListedPairs(*arrays, jnp.int32(index.shape[1] - 1), jnp.array(False))
    return x, charge, shared, listed, jnp.asarray(generator.normal(size=(N, 3)))


def _arrays(x, charge):
    return {"x": tuple(x[:, k] for k in range(3)), "charge": charge}


def _force_by_pair_sum(pairs, parity):
    def force(x, charge, shared):
        return jnp.stack(pair_sum(kernel, _arrays(x, charge), shared, pairs, parity), axis=1)

    return force


def _force_by_broadcasting(x, charge, shared):
    own = jax.tree.map(lambda a: a[:, None], _arrays(x, charge))
    other = jax.tree.map(lambda a: a[None], _arrays(x, charge))
    terms = kernel(own, other, shared, ~jnp.eye(N, dtype=bool))
    return jnp.stack([t.sum(axis=1) for t in terms], axis=1)


def _square(f):
    return lambda *args: jnp.sum(f(*args) ** 2)


USES = {
    "value": lambda f, a, v: f(*a),
    "jvp": lambda f, a, v: jax.jvp(f, a, (v, 2 * a[1], a[2])),
    "vjp": lambda f, a, v: jax.vjp(f, *a)[1](v),
    "vjp of parameters": lambda f, a, v: jax.vjp(lambda s: f(*a[:2], s), a[2])[1](v),
    "vmap of vjp": lambda f, a, v: jax.vmap(lambda v: jax.vjp(f, *a)[1](v))(jnp.stack([v, -v])),
    "grad of vmap": lambda f, a, v: jax.grad(
        lambda x: jnp.sum(jax.vmap(lambda x: f(x, *a[1:]))(x) ** 2)
    )(jnp.stack([a[0], a[0] + 0.1])),
    "forward over reverse": lambda f, a, v: jax.jvp(
        jax.grad(_square(f), (0, 1, 2)), a, (v, a[1], a[2])
    ),
    "reverse over reverse": lambda f, a, v: jax.grad(
        lambda x: jnp.sum(v * jax.grad(_square(f))(x, *a[1:]))
    )(a[0]),
    "many tangents": lambda f, a, v: jax.jacfwd(f, (0, 1, 2))(*a),
    "tangent of many": lambda f, a, v: jax.jvp(
        lambda x: jax.jacfwd(f, (0, 2))(x, *a[1:]), (a[0],), (v,)
    ),
    "gradient through many": lambda f, a, v: jax.grad(
        lambda q: jnp.sum(jnp.sin(jax.jacfwd(lambda x: f(x, q, a[2]))(a[0])))
    )(a[1]),
}


def test_blocks_cover_every_row_once():
    """Also where many small blocks do not divide the rows: no block begins behind the last row."""
    shapes = [(n, k, p) for n in range(1, 330) for k in (n, 8, 57) for p in (64, 1000, 2**12)]
    for n, k, pairs_per_block in shapes:
        count, size = _pairs.block_shape(n, k, pairs_per_block)
        assert (count - 1) * size < n <= count * size


def test_a_box_that_blocks_do_not_divide():
    """282 rows are 19 blocks of 15, the last of which starts early."""
    x = jnp.asarray(np.random.default_rng(0).uniform(size=(282, 3)))
    pair = lambda own, other, shared, present: tuple(
        jnp.where(present, a - b, 0) for a, b in zip(own["x"], other["x"], strict=True)
    )
    total = direct_sum(pair, {"x": tuple(x.T)}, None, -1)
    np.testing.assert_allclose(jnp.stack(total, 1), 282 * (x - x.mean(0)[None]), atol=1e-10)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    ("kind", "blocks"), [("listed", "uneven"), ("every", "uneven"), ("no parity", "one")]
)
def test_agrees_with_plain_differentiation(case, set_block_size, use, blocks, kind):
    x, charge, shared, listed, v = case
    if blocks == "uneven":
        set_block_size(300)
        assert (_pairs.block_shape(N, N)[0] * _pairs.block_shape(N, N)[1]) % N
    pairs = AllPairs() if kind == "every" else listed
    own = _force_by_pair_sum(pairs, None if kind == "no parity" else -1)
    arguments = (x, charge, shared)
    got, want = (
        jax.jit(lambda a, v, f=f: USES[use](f, a, v))(arguments, v)
        for f in (own, _force_by_broadcasting)
    )
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("use", ["value", "vjp", "grad of vmap", "forward over reverse"])
def test_nothing_scatters(case, set_block_size, use):
    set_block_size(300)
    x, charge, shared, listed, v = case

    f = _force_by_pair_sum(listed, -1)
    program = jax.jit(lambda x, q, s: USES[use](f, (x, q, s), v))
    assert "stablehlo.scatter" not in program.lower(x, charge, shared).as_text()


def test_plain_differentiation_of_the_same_list_would_scatter(case):
    x, charge, shared, listed, _ = case

    def plain(x):
        body = lambda own, other, present: (kernel(own, other, shared, present)[0].sum(1), None)
        return listed.reduce_pairs(body, _arrays(x, charge))[0]

    text = jax.jit(jax.grad(lambda x: jnp.sum(plain(x) ** 2))).lower(x).as_text()
    assert "stablehlo.scatter" in text


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="a GPU has other loops")
@pytest.mark.parametrize("use", ["value", "vjp"])
def test_all_components_are_summed_in_one_loop(case, use, monkeypatch):
    monkeypatch.setenv("PHYSKIT_NATIVE", "0")  # the loops that XLA makes
    x, charge, shared, listed, v = case

    def compiled(x):
        return USES[use](_force_by_pair_sum(listed, -1), (x, charge, shared), v)

    lines = jax.jit(compiled).lower(x).compile().as_text().splitlines()
    of_pairs = f"f64[{N},{listed.capacity}]"
    over_pairs = [x for x in lines if " reduce(" in x or "ynn_fusion" in x.split("=")[0]]
    assert [x for x in lines if of_pairs in x]
    over_pairs = [x for x in over_pairs if "dimensions={1}" in x or "ynn" in x]
    assert len(over_pairs) == 1, over_pairs


def test_sums_of_several_terms_under_vmap():
    a, b = jnp.arange(24.0).reshape(2, 3, 4), jnp.arange(12.0, 24.0).reshape(3, 4)
    terms = {"a": a, "b": b, "c": jnp.stack([a, a], axis=-1), "d": b.astype(jnp.int32)}
    axes = {"a": 0, "b": None, "c": 0, "d": None}

    def sums(terms):
        return sum_of_partners(terms)

    found = jax.vmap(sums, (axes,))(terms)
    twice = jax.vmap(jax.vmap(sums, (axes,)), ({"a": None, "b": 0, "c": None, "d": None},))(
        terms | {"b": b[None] * jnp.array([1.0, 2.0])[:, None, None]}
    )
    for name, term in terms.items():
        want = term if axes[name] == 0 else jnp.broadcast_to(term, (2, *term.shape))
        np.testing.assert_array_equal(found[name], np.asarray(want).sum(axis=2))
        scale = np.array([1, 2 if name == "b" else 1])
        for got, k in zip(twice[name], scale, strict=True):
            np.testing.assert_array_equal(got, k * np.asarray(want).sum(axis=2))


def test_only_a_cpu_goes_through_small_blocks(case, set_block_size, monkeypatch):
    monkeypatch.setenv("PHYSKIT_NATIVE", "0")
    set_block_size(300)
    x, charge, shared, listed, v = case
    for pairs in (listed, AllPairs()):
        force = _force_by_pair_sum(pairs, -1)
        traced = jax.jit(lambda *a, f=force: jax.vjp(f, *a)[1](v)).trace(x, charge, shared)
        assert "stablehlo.while" in traced.lower(lowering_platforms=("cpu",)).as_text()
        assert "stablehlo.while" not in traced.lower(lowering_platforms=("cuda",)).as_text()


def test_memory_of_the_gradient_is_that_of_a_block(set_block_size):
    n, k = 20_000, 64
    set_block_size(2**14)
    ring = (np.arange(n)[:, None] + np.r_[-k // 2 : 0, 1 : k // 2 + 1]) % n
    place = jnp.arange(n, dtype=jnp.int32)
    listed = ListedPairs(jnp.asarray(ring, jnp.int32), place, place, jnp.int32(k), jnp.array(False))
    x, charge = jnp.ones((n, 3)), jnp.ones(n)
    shared = {"depth": jnp.asarray(1.0), "range": jnp.asarray(1.0)}
    program = jax.jit(jax.grad(_square(_force_by_pair_sum(listed, -1)), (0, 1, 2)))
    used = program.lower(x, charge, shared).compile().memory_analysis().temp_size_in_bytes
    assert used < 0.5 * n * k * 8, "less than one array of all pairs"


class TestExact:
    def _sums(self, case, quantum, dtype, x=None, order=None):
        x0, charge, shared, *_ = case
        x = x0 if x is None else x
        order = np.arange(N) if order is None else order
        arrays = jax.tree.map(lambda a: a.astype(dtype), _arrays(x[order], charge[order]))
        shared = jax.tree.map(lambda a: a.astype(dtype), shared)
        forces, in_range = exact_pair_sum(
            kernel, arrays, shared, AllPairs(), -1, jnp.asarray(quantum, dtype)
        )
        return np.stack(forces, axis=1)[np.argsort(order)], bool(in_range)

    def test_order_of_particles_does_not_matter(self, case, dtype):
        quantum = 2.0**-20 if dtype == jnp.float32 else 2.0**-44
        order = np.random.default_rng(3).permutation(N)
        a, in_range = self._sums(case, quantum, dtype)
        b, _ = self._sums(case, quantum, dtype, order=order)
        assert in_range
        assert np.array_equal(a, b)

    def test_close_to_the_plain_sum(self, case, dtype):
        quantum = 2.0**-16
        a, _ = self._sums(case, quantum, dtype)
        plain = np.asarray(_force_by_broadcasting(*case[:3]))
        assert 0 < np.abs(a - plain).max() < N * quantum

    def test_total_momentum_is_conserved_to_the_bit(self, case):
        quantum = 2.0**-40
        a, _ = self._sums(case, quantum, np.dtype(np.float64))
        assert np.all(np.round(a / quantum).astype(np.int64).sum(axis=0) == 0)

    def test_out_of_range_is_reported_and_poisons(self, case, dtype):
        quantum = 2.0**-45 if dtype == jnp.float32 else 2.0**-110
        a, in_range = self._sums(case, quantum, dtype)
        assert not in_range
        assert np.any(np.isnan(a))

    def test_derivative_is_that_of_the_plain_sum(self, case):
        x, charge, shared, listed, v = case

        def exact(x):
            out, _ = exact_pair_sum(
                kernel, _arrays(x, charge), shared, listed, -1, jnp.asarray(0.125)
            )
            return jnp.stack(out, axis=1)

        got = jax.vjp(exact, x)[1](v)[0]
        want = jax.vjp(lambda x: _force_by_broadcasting(x, charge, shared), x)[1](v)[0]
        np.testing.assert_allclose(got, want, atol=1e-12)


def test_direct_sum_is_the_sum_over_every_pair(case):
    x, charge, shared, *_ = case
    got = jnp.stack(direct_sum(kernel, _arrays(x, charge), shared, -1), axis=1)
    np.testing.assert_allclose(got, _force_by_broadcasting(x, charge, shared), atol=1e-12)


@pytest.mark.parametrize(("bodies", "is_native"), [(5, False), (40, True)])
def test_sums_over_few_pairs_are_left_to_xla(bodies, is_native):
    """A call of native code would take longer than the loops of XLA, which are part of other kernels."""
    if not native_code_is_used():
        pytest.skip("there is no C compiler here")
    x = jnp.asarray(np.random.default_rng(1).normal(size=(bodies, 3)))
    particles = {"x": tuple(x.T), "charge": jnp.ones(bodies)}
    shared = {"range": jnp.ones(()), "depth": jnp.ones(())}
    program = jax.jit(lambda *given: direct_sum(kernel, *given, -1)).lower(particles, shared)
    assert ("physkit_" in program.as_text()) == is_native
