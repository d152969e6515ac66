"""`linear_call`: a hand-written transpose agrees with JAX's own derivatives under every transformation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import linear_call

N = 7


def _forward(residuals, x):
    """Σ over a symmetric list of w·(xᵢ − xⱼ): its own transpose."""
    weight, index = residuals["weight"], residuals["index"]
    pair = jnp.sin(weight[:, None] + weight[index])
    return {"y": jnp.sum(pair * (x["x"][:, None] - x["x"][index]), axis=1)}


def _transpose(residuals, y):
    return {"x": _forward(residuals, {"x": y["y"]})["y"]}


@pytest.fixture
def case():
    ring = np.arange(N)
    index = jnp.asarray(np.stack([(ring + 1) % N, (ring - 1) % N], axis=1))
    keys = jax.random.split(jax.random.key(0), 3)
    x, w, c = (jax.random.normal(k, (N,)) for k in keys)

    def with_linear_call(x, w):
        out = linear_call(_forward, _transpose, {"weight": w, "index": index}, {"x": x})
        return out["y"]

    def plain(x, w):
        return _forward({"weight": w, "index": index}, {"x": x})["y"]

    return with_linear_call, plain, x, w, c


TRANSFORMATIONS = {
    "value": lambda f, x, w, c: f(x, w),
    "jit": lambda f, x, w, c: jax.jit(f)(x, w),
    "jvp": lambda f, x, w, c: jax.jvp(f, (x, w), (c, x)),
    "jvp in x": lambda f, x, w, c: jax.jvp(lambda x: f(x, w), (x,), (c,)),
    "vjp": lambda f, x, w, c: jax.vjp(f, x, w)[1](c),
    "vmap": lambda f, x, w, c: jax.vmap(f, (0, None))(jnp.stack([x, c]), w),
    "vmap of residuals": lambda f, x, w, c: jax.vmap(f, (None, 1), 1)(x, jnp.stack([w, c], 1)),
    "jacobians": lambda f, x, w, c: (jax.jacfwd(f, (0, 1))(x, w), jax.jacrev(f, (0, 1))(x, w)),
    "vmap of grad": lambda f, x, w, c: jax.vmap(jax.grad(lambda x: jnp.sum(f(x, w) ** 2)))(
        jnp.stack([x, c])
    ),
    "grad of vmap": lambda f, x, w, c: jax.grad(
        lambda X: jnp.sum(jax.vmap(lambda x: f(x, w))(X) ** 3)
    )(jnp.stack([x, c])),
    "forward over reverse": lambda f, x, w, c: jax.jvp(
        jax.grad(lambda w: jnp.sum(f(x, w) * c)), (w,), (x,)
    ),
    "reverse over reverse": lambda f, x, w, c: jax.grad(
        lambda x: jnp.sum(c * jax.grad(lambda w: jnp.sum(f(x, w) ** 2))(w))
    )(x),
    "checkpointed scan": lambda f, x, w, c: jax.jit(
        jax.grad(
            lambda x: jnp.sum(
                jax.lax.scan(
                    jax.checkpoint(lambda y, _: (y + 0.1 * f(y, w), None)), x, None, length=4
                )[0]
                ** 2
            )
        )
    )(x),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_agrees_with_plain_differentiation(case, name):
    with_linear_call, plain, x, w, c = case
    for a, b in zip(
        jax.tree.leaves(TRANSFORMATIONS[name](with_linear_call, x, w, c)),
        jax.tree.leaves(TRANSFORMATIONS[name](plain, x, w, c)),
    ):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize(
    "gradient",
    [
        lambda f, X, w: jax.grad(lambda X: jnp.sum(jax.vmap(lambda x: f(x, w))(X) ** 2))(X),
        lambda f, X, w: jax.vmap(jax.grad(lambda x: jnp.sum(f(x, w) ** 2)))(X),
    ],
    ids=["grad of vmap", "vmap of grad"],
)
def test_batched_gradients_use_the_given_transpose(case, gradient):
    with_linear_call, plain, x, w, c = case
    batch = jnp.stack([x, c])

    def lowered(f):
        return jax.jit(lambda X: gradient(f, X, w)).lower(batch).as_text()

    assert "stablehlo.scatter" not in lowered(with_linear_call)
    assert "stablehlo.scatter" in lowered(plain)


def test_a_transpose_of_another_structure_raises(case):
    *_, x, w, c = case

    def wrong(residuals, y):
        return {"other": y["y"]}

    def f(x):
        return linear_call(
            _forward, wrong, {"weight": w, "index": jnp.zeros((N, 2), int)}, {"x": x}
        )["y"]

    with pytest.raises(TypeError, match="disagree"):
        jax.vjp(f, x)[1](c)


def test_a_gradient_does_not_trace_what_it_does_not_use(case):
    _, plain, x, w, c = case
    traced = []

    class Map:
        def __init__(self, function):
            self.function = function

        def __call__(self, residuals, linear):
            traced.append(self.function)
            return self.function(residuals, linear)

    @jax.custom_jvp
    def function(x):
        return plain(x, w)

    @function.defjvp
    def _(primals, tangents):
        out = function(*primals)
        maps, residuals = (Map(_forward), Map(_transpose)), {"weight": w, "index": index}
        dot = linear_call(*maps, residuals, {"x": tangents[0]}, result={"y": out})
        return out, dot["y"]

    ring = np.arange(N)
    index = jnp.asarray(np.stack([(ring + 1) % N, (ring - 1) % N], axis=1))
    gradient = jax.jit(jax.grad(lambda x: jnp.vdot(c, function(x))))(x)
    assert set(traced) == {_transpose}
    np.testing.assert_allclose(gradient, jax.grad(lambda x: jnp.vdot(c, plain(x, w)))(x), rtol=1e-6)
    traced.clear()
    # A map of many tangents, and what is not differentiated at all.
    dots = jnp.eye(N)
    many = jax.jit(jax.vmap(lambda dot: jax.jvp(function, (x,), (dot,))[1]))(dots)
    assert set(traced) == {_forward}
    np.testing.assert_allclose(many.T, jax.jacobian(lambda x: plain(x, w))(x), rtol=1e-5, atol=1e-6)


def test_gradients_in_a_users_shard_map(case):
    """JAX keeps account there of what differs between devices: cotangents of what does not are summed."""
    with_linear_call, plain, _, w, c = case
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("d",))
    each, same = jax.sharding.PartitionSpec("d"), jax.sharding.PartitionSpec()
    x = jax.random.normal(jax.random.key(1), (4, N))

    def over_devices(function):
        def loss(x, w):
            total = jnp.sum(jax.vmap(lambda x: jnp.vdot(c, jnp.sin(function(x, w))))(x))
            return jax.lax.psum(total, "d")

        sharded = jax.shard_map(loss, mesh=mesh, in_specs=(each, same), out_specs=same)
        inside = jax.shard_map(
            jax.vmap(jax.grad(lambda x, w: jnp.vdot(c, function(x, w))), (0, None)),
            mesh=mesh,
            in_specs=(each, same),
            out_specs=each,
        )
        return jax.jit(jax.grad(sharded, (0, 1)))(x, w), jax.jit(inside)(x, w)

    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        over_devices(with_linear_call),
        over_devices(plain),
    )
