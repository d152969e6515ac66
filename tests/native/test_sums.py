"""Sums over partners by native code are those of all terms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.native import NotTranslatableError, sum_over_partners


def _terms(a, b, context, present):
    """Several sums of particles with positions, species, a flag and a matrix each."""
    d = a["x"] - b["x"]
    square = jnp.where(present, jnp.sum(d * d, -1), 1)
    strength = jnp.where(present, context["table"][a["species"], b["species"]] / (1 + square), 0)
    flagged = jnp.where(present & b["flag"], strength, 0)
    tensor = jnp.where(present[..., None, None], b["matrix"] * strength[..., None, None], 0)
    return {"force": strength[..., None] * d, "flagged": flagged, "tensor": tensor}


def _particles(n, d, seed=0):
    choose = np.random.default_rng(seed)
    return {
        "x": jnp.asarray(choose.normal(size=(n, d)), jnp.float32),
        "species": jnp.asarray(choose.integers(0, 3, n), jnp.int32),
        "flag": jnp.asarray(choose.integers(0, 2, n), bool),
        "matrix": jnp.asarray(choose.normal(size=(n, 2, 3)), jnp.float32),
        "nothing": jnp.zeros((n, 0), jnp.float32),
    }


CONTEXT = {"table": jnp.asarray(np.random.default_rng(9).normal(size=(3, 3)), jnp.float32)}


@jax.jit
def _native(a, b, index):
    return sum_over_partners(_terms, a, b, CONTEXT, index)


@jax.jit
def _native_batch(a, b, index):
    return jax.vmap(_native, (0, None, 0))(a, b, index)


def _by_jax(a, b, index):
    """In double precision, all terms at once."""
    n = len(b["x"])
    a, b, context = jax.tree.map(
        lambda z: z.astype(float) if z.dtype == jnp.float32 else z, (a, b, CONTEXT)
    )
    present = index < n
    a = jax.tree.map(lambda z: z[:, None], a)
    b = jax.tree.map(lambda z: jnp.take(z, index, axis=0, mode="clip"), b)
    with jax.numpy_rank_promotion("allow"):
        return jax.tree.map(lambda t: jnp.sum(t, 1), _terms(a, b, context, present))


def _list(rows, columns, n, seed=1):
    """Partners with holes, and an empty row."""
    index = np.random.default_rng(seed).integers(0, n + n // 4 + 1, (rows, columns))
    index = np.minimum(index, n)
    index[rows // 2] = n
    return jnp.asarray(index, jnp.int32)


def _assert_close(got, expected):
    for name, values in expected.items():
        np.testing.assert_allclose(got[name], values, rtol=1e-4, atol=2e-4, err_msg=name)


def _assert_same_bits(got, expected):
    for name, values in expected.items():
        np.testing.assert_array_equal(got[name], values, err_msg=name)


# The second has rows of several blocks, the third as many partners as a block.
@pytest.mark.parametrize(("d", "rows", "columns"), [(1, 9, 5), (2, 60, 700), (3, 50, 256)])
def test_listed_partners(d, rows, columns):
    a, b, index = _particles(rows, d), _particles(400, d, 1), _list(rows, columns, 400)
    got = _native(a, b, index)
    _assert_close(got, _by_jax(a, b, index))
    assert not np.any(got["force"][rows // 2])


@pytest.mark.parametrize(("d", "n"), [(1, 2), (2, 257), (3, 600)])
def test_all_pairs(d, n):
    a = _particles(n, d)
    j = jnp.broadcast_to(jnp.arange(n)[None], (n, n))
    _assert_close(_native(a, a, None), _by_jax(a, a, jnp.where(j == j.T, n, j)))


@pytest.mark.parametrize(
    ("rows", "columns", "n"), [(0, 4, 5), (3, 0, 5), (3, 2, 0), (0, 0, 0), (1, 1, 1)]
)
def test_sums_of_nothing(rows, columns, n):
    index = jnp.full((rows, columns), n, jnp.int32)
    sums = _native(_particles(rows, 2), _particles(n, 2), index)
    assert sums["tensor"].shape == (rows, 2, 3)
    assert not any(np.any(s) for s in sums.values())
    batch = _native_batch(_stack(_particles(rows, 2), 0), _particles(n, 2), _stack(index, 0))
    assert batch["tensor"].shape == (0, rows, 2, 3)


def _stack(tree, count):
    return jax.tree.map(
        lambda z: jnp.stack([z] * count) if count else jnp.zeros((0, *z.shape), z.dtype), tree
    )


def test_entries_below_zero_are_no_partners():
    a, index = _particles(5, 2), jnp.array([[1, -1, 2, -(2**31)]] * 5, jnp.int32)
    expected = _native(a, a, jnp.where(index < 0, 5, index))
    _assert_same_bits(_native(a, a, index), expected)


def test_an_index_of_other_integers():
    a, index = _particles(9, 2), _list(9, 5, 9)
    expected = _native(a, a, index)
    _assert_same_bits(_native(a, a, index.astype(jnp.int64)), expected)


def test_members_of_a_batch_and_threads_give_the_same_bits():
    """Rows are summed alike, whichever thread takes them: few rows are summed by one."""
    members, rows, n = 3, 700, 500
    a = [_particles(rows, 3, seed) for seed in range(members)]
    index = [_list(rows, 90, n, seed) for seed in range(members)]
    b = _particles(n, 3, 7)
    batch = _native_batch(jax.tree.map(lambda *z: jnp.stack(z), *a), b, jnp.stack(index))
    for m in range(members):
        alone = _native(a[m], b, index[m])
        _assert_same_bits(jax.tree.map(lambda z, m=m: z[m], batch), alone)
        for rows_of_piece in (slice(k, k + 70) for k in range(0, rows, 70)):
            piece, expected = (
                jax.tree.map(lambda z, some=rows_of_piece: z[some], tree) for tree in (a[m], alone)
            )
            _assert_same_bits(_native(piece, b, index[m][rows_of_piece]), expected)


def test_two_axes_of_a_batch():
    a, index = _particles(6, 2), _list(6, 5, 6)
    twice = jax.vmap(_native_batch, (0, None, 0))(
        _stack(_stack(a, 2), 3), a, _stack(_stack(index, 2), 3)
    )
    np.testing.assert_array_equal(twice["force"][2, 1], _native(a, a, index)["force"])


def test_products_and_sums_are_rounded_one_by_one_where_they_must_be():
    """Of a rounded product nothing is left; a fused one leaves its rounding error."""

    def rounding_error(a, b, context, present):
        return jnp.where(present, a * b - jax.lax.optimization_barrier(a * b), 0)

    x = jnp.asarray(np.random.default_rng(0).normal(size=40), jnp.float32)
    product = lambda a, b, c, present: jnp.where(present, a * b - c[0], 0)
    index = jnp.arange(40, dtype=jnp.int32)[:, None]
    exact = jax.jit(lambda x: sum_over_partners(rounding_error, x, x, (), index, True))(x)
    assert not np.any(exact)
    k = 7
    c = (jnp.asarray(np.float32(x[k]) * np.float32(x[k])),)
    exact = jax.jit(lambda x, c: sum_over_partners(product, x, x, c, index, True))(x, c)
    assert exact[k] == 0


def test_all_threads_flush_numbers_that_are_hardly_any():
    """As XLA's do. Where one of them did not, sums would depend on who took which row."""
    x = jnp.full(20_000, 1e-20, jnp.float32)
    index = jnp.zeros((20_000, 8), jnp.int32)
    product = lambda a, b, _, present: jnp.where(present, a * b, 0)
    assert not np.any(jax.jit(lambda x: sum_over_partners(product, x, x, (), index))(x))


@pytest.mark.parametrize(
    ("particles", "message"),
    [
        ({"x": jnp.zeros((3, 300))}, "many numbers"),
        ({"x": jnp.zeros((3, 1)), "key": jax.random.split(jax.random.key(0), 3)}, "key<"),
        ({"x": jnp.zeros((3, 1)), "half": jnp.zeros(3, jnp.float16)}, "float16"),
    ],
)
def test_particles_that_are_left_to_jax(particles, message):
    def terms(a, b, _, present):
        return jnp.where(present, a["x"][..., 0] - b["x"][..., 0], 0)

    with pytest.raises(NotTranslatableError, match=message):
        sum_over_partners(terms, particles, particles, (), None)


def test_sums_of_many_numbers_are_left_to_jax():
    def terms(a, b, context, present):
        return jnp.where(present[..., None], (a - b)[..., None] * context, 0)

    x = jnp.zeros(3)
    with (
        pytest.raises(NotTranslatableError, match="many numbers"),
        jax.numpy_rank_promotion("allow"),
    ):
        sum_over_partners(terms, x, x, jnp.zeros(300), None)
