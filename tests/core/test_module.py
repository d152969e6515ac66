"""`Module`: abstract or final classes, kinds of fields, strongly typed parameters, precision."""

import sys
import types

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    DeclarationError,
    Module,
    Network,
    ParameterError,
    as_parameter,
    cast_floats,
    concrete_value,
    data,
    float_dtype,
    is_abstract,
    param,
    static,
)


class AbstractSpring(Module):
    stiffness: eqx.AbstractVar[jax.Array]


class Spring(AbstractSpring):
    stiffness: jax.Array = param(2.0)
    count: jax.Array = data(3)
    name: str = static(default="spring")


class TestAbstractOrFinal:
    def test_a_final_class_cannot_be_subclassed(self):
        with pytest.raises(DeclarationError, match="Stiff subclasses Spring, which is final"):

            class Stiff(Spring):
                pass

    def test_an_abstract_class_can_be_subclassed(self):
        assert is_abstract(AbstractSpring)
        assert not is_abstract(Spring)
        assert Spring().stiffness == 2.0

    def test_an_abstract_field_must_be_filled(self):
        class Incomplete(AbstractSpring):
            pass

        with pytest.raises(TypeError, match="lacks the field `stiffness`"):
            Incomplete()

    def test_future_annotations_are_refused(self):
        source = (
            "from __future__ import annotations\n"
            "from physkit.core import Module\n"
            "class Deferred(Module):\n    x: int\n"
        )
        module = types.ModuleType("deferred")
        sys.modules["deferred"] = module
        try:
            with pytest.raises(DeclarationError, match="from __future__ import annotations"):
                exec(compile(source, "deferred.py", "exec"), module.__dict__)
        finally:
            del sys.modules["deferred"]


class TestFields:
    @pytest.mark.parametrize("value", [1.0, 1, True, 1j])
    def test_a_bare_number_is_refused(self, value):
        class Bare(Module):
            x: object

        with pytest.raises(DeclarationError, match=r"Bare\.x holds the bare Python number"):
            Bare(value)

    def test_a_bare_number_inside_a_container_is_refused(self):
        class Holder(Module):
            x: dict

        with pytest.raises(DeclarationError, match=r"Holder\.x"):
            Holder({"a": [1.0]})

    def test_static_fields_are_no_leaves(self):
        class Choice(Module):
            n: int = static(default=3)

        assert Choice().n == 3
        assert jax.tree.leaves(Choice()) == []

    @pytest.mark.parametrize("value", [2, 2.0, np.float64(2.0), np.array(2), True])
    def test_parameters_are_strongly_typed_floats(self, value):
        spring = Spring(value)
        assert spring.stiffness.dtype == jnp.zeros(()).dtype
        assert not spring.stiffness.weak_type
        assert not spring.count.weak_type

    def test_parameters_keep_the_precision_of_arrays(self):
        assert Spring(np.float32(2)).stiffness.dtype == jnp.float32
        assert Spring(jnp.ones(3, jnp.float16)).stiffness.dtype == jnp.float16
        assert as_parameter(jnp.arange(3)).dtype == jnp.zeros(()).dtype

    @pytest.mark.parametrize("value", ["2", b"2", abs, [1, "a"], {"a": 1}])
    def test_parameters_that_are_no_numbers_raise(self, value):
        with pytest.raises(ParameterError, match="must be a number or an array"):
            Spring(value)

    def test_data_keeps_its_type(self):
        assert jnp.issubdtype(Spring().count.dtype, jnp.integer)

    def test_new_values_do_not_recompile(self):
        traces = []

        @eqx.filter_jit
        def force(spring, x):
            traces.append(1)
            return -spring.stiffness * x

        x = jnp.ones(2)
        for stiffness in (1.0, 2, np.float64(3.0)):
            force(Spring(stiffness), x)
        assert len(traces) == 1

    def test_gradients_reach_parameters(self):
        gradient = jax.grad(lambda s: s.stiffness**2, allow_int=True)(Spring(3.0))
        assert gradient.stiffness == 6.0

    @pytest.mark.parametrize("value", [jnp.array([1.0, 2.0]), np.array([1.0, 2.0]), [1.0, 2.0]])
    def test_a_default_may_be_an_array(self, value):
        """A bare error of dataclasses said to use a factory."""

        class Weighted(Module):
            weights: jax.Array = param(value)

        assert Weighted().weights.tolist() == [1.0, 2.0]
        assert Weighted(3.0).weights == 3.0

    @pytest.mark.parametrize("declare", [param, data, static])
    def test_a_declaration_is_no_value(self, declare):
        with pytest.raises(ParameterError, match=r"declares a field in a class .* give the value"):
            Spring(declare(1.0))


class TestPrecision:
    def test_cast_changes_floats_only(self):
        tree = {"x": jnp.ones(2), "n": jnp.arange(2), "z": jnp.ones(2, complex), "f": abs}
        low = cast_floats(tree, jnp.float32)
        assert low["x"].dtype == jnp.float32
        assert low["z"].dtype == jnp.complex64
        assert low["n"].dtype == tree["n"].dtype
        assert low["f"] is abs
        assert cast_floats(low, jnp.float64)["z"].dtype == jnp.complex128

    def test_cast_is_differentiable_and_traceable(self):
        derivative = jax.jit(
            jax.grad(lambda x: cast_floats(x, jnp.float32).astype(jnp.float64) ** 2)
        )
        assert derivative(jnp.asarray(3.0)) == 6.0

    def test_mixed_precision_is_refused(self):
        with pytest.raises(ParameterError, match=r"mixes precisions \['float32', 'float64'\]"):
            float_dtype({"x": jnp.ones(2), "y": jnp.ones(2, jnp.float32)})

    def test_a_state_without_floats_has_the_default(self):
        assert float_dtype({"n": jnp.arange(3)}) == jnp.zeros(()).dtype
        assert float_dtype({"z": jnp.ones(2, jnp.complex64)}) == jnp.float32

    def test_concrete_value_is_none_inside_a_trace(self):
        assert concrete_value(None) is None
        assert concrete_value(jnp.arange(3)).tolist() == [0, 1, 2]
        values = []

        @jax.jit
        def record(x):
            values.append(concrete_value(x))
            return x

        record(1.0)
        assert values == [None]


def test_a_network_is_a_module_whose_activations_are_static(key):
    network = eqx.nn.MLP("scalar", "scalar", 4, 1, activation=jnp.tanh, key=key)
    wrapped = Network(network)
    x = jnp.asarray(0.3)
    assert wrapped(x) == network(x)
    assert all(eqx.is_inexact_array(leaf) for leaf in jax.tree.leaves(wrapped))
    hash(jax.tree.structure(wrapped))


@pytest.mark.parametrize("args", [2.0, np.float64(2.0), [2.0, 1.0], {"rate": 2.0}])
def test_plain_numbers_are_arguments_of_functions(args):
    decay = pk.Function(lambda t, x, args: -x * jax.tree.leaves(args)[0], args)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(decay.args))
    found = pk.simulate(pk.Simulation(pk.Euler(decay), dt=0.25), jnp.ones(()), 1).state
    assert found == 0.5
