"""Branches under `vmap`: all members of a batch take one together."""

import jax
import jax.numpy as jnp

from physkit.core import any_in_batch, cond_for_batch


def test_any_in_batch_without_vmap_is_the_identity():
    assert any_in_batch(jnp.array(True))
    assert not any_in_batch(jnp.array(False))


def test_any_in_batch_holds_if_it_holds_for_one_member():
    predicates = jnp.array([False, True, False])
    assert jax.vmap(any_in_batch)(predicates).tolist() == [True] * 3
    assert jax.vmap(any_in_batch)(predicates & False).tolist() == [False] * 3
    nested = jax.vmap(jax.vmap(any_in_batch))(jnp.array([[False, False], [False, True]]))
    assert nested.all()


def test_cond_for_batch_stays_a_branch_under_vmap():
    def step(x):
        return cond_for_batch(x > 0, lambda y: jnp.sin(y), lambda y: y, x)

    text = str(jax.make_jaxpr(jax.vmap(step))(jnp.ones(3)))
    assert "cond[" in text
    assert "select_n" not in text
    plain = jax.make_jaxpr(jax.vmap(lambda x: jax.lax.cond(x > 0, jnp.sin, lambda y: y, x)))
    assert "select_n" in str(plain(jnp.ones(3)))


def test_all_members_take_the_branch_that_one_needs():
    x = jnp.array([-1.0, 2.0])
    out = jax.vmap(lambda x: cond_for_batch(x > 0, lambda y: 10 * y, lambda y: y, x))(x)
    assert out.tolist() == [-10.0, 20.0]


def test_diverged_members_do_not_count():
    x = jnp.array([jnp.nan, -1.0])
    out = jax.vmap(lambda x: cond_for_batch(x > 0, lambda y: 10 * y, lambda y: y, x))(x)
    assert out[1] == -1.0


def test_gradients_pass_through_cond_for_batch():
    derivative = jax.grad(lambda x: cond_for_batch(x > 0, lambda y: y**2, lambda y: y, x))
    assert derivative(jnp.asarray(3.0)) == 6.0
