"""Faults as data, growth, safe maths, and decisions of a whole batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    AbstractGrowable,
    CapacityError,
    CutoffError,
    Fault,
    Faults,
    Health,
    ParameterError,
    SimulationDiverged,
    all_finite,
    any_in_batch,
    collect_faults,
    cond_for_batch,
    data,
    find_growables,
    grow_caches,
    has_overflow,
    safe_divide,
    safe_norm,
    safe_power,
    safe_sqrt,
    where_safe,
)
from physkit.core._faults import ADVICE


class Row(AbstractGrowable):
    entries: jax.Array = data()
    required: jax.Array = data()

    @property
    def capacity(self):
        return self.entries.shape[-1]

    def grow_to(self, capacity):
        width = [(0, 0)] * (self.entries.ndim - 1) + [(0, capacity - self.capacity)]
        return Row(jnp.pad(self.entries, width, constant_values=-1), self.required)


def row(capacity, required):
    return Row(jnp.arange(capacity), jnp.asarray(required))


class TestHealth:
    def test_nothing_wrong(self):
        health = collect_faults({"list": row(3, 3), "faults": Faults.none()})
        assert health.ok
        health.check()

    def test_faults_are_sticky_and_collected(self):
        faults = Faults.none().set_if(Fault.CUTOFF, jnp.array(True))
        faults = faults.set_if(Fault.CUTOFF, jnp.array(False)).set_if(Fault.MASS, jnp.array(True))
        health = jax.jit(collect_faults)((faults, None, {"x": Faults.none()}))
        assert health.faults() == Fault.CUTOFF | Fault.MASS

    def test_overflow_and_given_faults(self):
        broken = jnp.array(True)
        health = collect_faults(row(3, 4), (Fault.GUARD, broken), (Fault.NOT_FINITE, ~broken))
        assert health.faults() == Fault.OVERFLOW | Fault.GUARD

    def test_the_most_telling_fault_is_raised(self):
        """A cause comes before what follows from it."""
        with pytest.raises(CutoffError, match="between steps 3 and 7: a cutoff"):
            Health(jnp.int32(Fault.CUTOFF | Fault.NOT_FINITE)).check("between steps 3 and 7")
        with pytest.raises(CapacityError, match="overflowed"):
            Health(jnp.int32(Fault.OVERFLOW | Fault.NOT_FINITE)).check()
        with pytest.raises(SimulationDiverged) as caught:
            Health(jnp.int32(Fault.NOT_FINITE)).check("here", steps=5)
        assert caught.value.steps == 5

    @pytest.mark.parametrize("fault", list(Fault))
    def test_every_fault_has_an_error_with_advice(self, fault):
        error, advice = ADVICE[fault]
        with pytest.raises(error) as caught:
            Health(jnp.int32(fault)).check()
        assert advice in str(caught.value)

    def test_members_of_a_batch(self):
        bits = jnp.array([0, int(Fault.MASS), 0], jnp.int32)
        assert Health(bits).faults() == Fault.MASS
        with pytest.raises(ParameterError, match="mass"):
            Health(bits).check()

    def test_all_finite_looks_at_floats_only(self):
        assert all_finite({"n": jnp.arange(3)})
        assert all_finite({"x": jnp.ones(3), "z": jnp.ones(2, complex)})
        assert not all_finite({"x": jnp.array([1.0, jnp.inf])})
        assert not all_finite((jnp.ones(1), jnp.array(complex(0, np.nan))))


class TestGrowth:
    def test_only_what_is_short_grows(self):
        tree = {"a": row(4, 0), "b": (row(4, 0), jnp.ones(2))}
        measured = {"a": row(4, 4), "b": (row(4, 9), jnp.ones(2))}
        bigger, events = grow_caches(tree, measured)
        assert bigger["a"].capacity == 4
        assert bigger["b"][0].capacity == 12  # ⌈1.25 · 9⌉
        assert bigger["b"][0].entries[:4].tolist() == [0, 1, 2, 3]
        assert events == ["Row 4 → 12"]

    def test_nothing_to_do(self):
        tree = (row(4, 0),)
        same, events = grow_caches(tree, (row(4, 4),))
        assert same[0] is tree[0]
        assert events == []

    def test_a_batch_shares_one_decision(self):
        tree = Row(jnp.zeros((3, 4)), jnp.zeros(3, jnp.int32))
        bigger, _ = grow_caches(tree, Row(jnp.zeros((3, 4)), jnp.array([1, 8, 3])))
        assert bigger.entries.shape == (3, 10)

    def test_overflow_is_traceable(self):
        assert not has_overflow({"x": jnp.ones(2)})
        assert jax.jit(has_overflow)((row(3, 4), row(9, 1)))
        assert not jax.jit(has_overflow)((row(3, 3),))
        assert len(find_growables((row(3, 3), {"y": row(1, 1)}))) == 2


class TestAnyInBatch:
    def test_alone_it_is_itself(self):
        assert any_in_batch(jnp.array(True))
        assert not any_in_batch(jnp.array(False))

    def test_under_vmap_one_is_enough(self):
        votes = jnp.array([False, True, False])
        assert jax.vmap(any_in_batch)(votes).tolist() == [True] * 3
        assert jax.vmap(any_in_batch)(votes & False).tolist() == [False] * 3
        nested = jax.vmap(jax.vmap(any_in_batch))(jnp.array([[False, False], [False, True]]))
        assert nested.all()

    def test_the_branch_stays_a_branch(self):
        def step(x):
            return cond_for_batch(x > 0, lambda y: jnp.sin(y), lambda y: y, x)

        text = str(jax.make_jaxpr(jax.vmap(step))(jnp.ones(3)))
        assert "cond[" in text
        assert "select_n" not in text
        plain = jax.make_jaxpr(jax.vmap(lambda x: jax.lax.cond(x > 0, jnp.sin, lambda y: y, x)))
        assert "select_n" in str(plain(jnp.ones(3)))

    def test_if_any_asks_all_take_it(self):
        x = jnp.array([-1.0, 2.0])
        out = jax.vmap(lambda x: cond_for_batch(x > 0, lambda y: 10 * y, lambda y: y, x))(x)
        assert out.tolist() == [-10.0, 20.0]

    def test_diverged_members_do_not_vote(self):
        x = jnp.array([jnp.nan, -1.0])
        out = jax.vmap(lambda x: cond_for_batch(x > 0, lambda y: 10 * y, lambda y: y, x))(x)
        assert out[1] == -1.0

    def test_gradients_pass_through(self):
        slope = jax.grad(lambda x: cond_for_batch(x > 0, lambda y: y**2, lambda y: y, x))
        assert slope(jnp.asarray(3.0)) == 6.0


class TestSafe:
    @pytest.mark.parametrize(
        ("function", "x", "value", "slope"),
        [
            (safe_sqrt, 4.0, 2.0, 0.25),
            (safe_sqrt, 0.0, 0.0, 0.0),
            (safe_sqrt, -1.0, 0.0, 0.0),
            (lambda x: safe_power(x, 1.5), 4.0, 8.0, 3.0),
            (lambda x: safe_power(x, 0.5), 0.0, 0.0, 0.0),
            (lambda x: safe_divide(1.0 + 0 * x, x), 2.0, 0.5, -0.25),
            (lambda x: safe_divide(1.0 + 0 * x, x), 0.0, 0.0, 0.0),
            (lambda x: safe_norm(jnp.stack([x, 0 * x])), 3.0, 3.0, 1.0),
            (lambda x: safe_norm(jnp.stack([x, 0 * x])), 0.0, 0.0, 0.0),
            (lambda x: where_safe(x > 0, jnp.log, x), 2.0, np.log(2.0), 0.5),
            (lambda x: where_safe(x > 0, jnp.log, x), 0.0, 0.0, 0.0),
        ],
    )
    def test_value_and_derivative(self, function, x, value, slope, dtype):
        x = jnp.asarray(x, dtype)
        assert function(x) == pytest.approx(value, rel=1e-6)
        assert function(x).dtype == dtype
        for derivative in (jax.grad, jax.jacfwd):
            assert derivative(function)(x) == pytest.approx(slope, rel=1e-6)
        assert np.isfinite(jax.grad(jax.grad(function))(x))
