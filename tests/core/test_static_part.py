"""What programs are compiled for: equal only where the same is computed."""

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import StaticPart, split_arrays
from physkit.fit._program import compile_by_content

EQUAL_TO_PYTHON = [1, 1.0, True, 1 + 0j], [0.0, -0.0, 0, False]


class Chosen(pk.Module):
    """Something of the user's, with a function."""

    weight: jax.Array = pk.param()
    by: Callable = pk.static()


def test_the_whole_comes_back():
    tree = {"a": jnp.arange(3), "b": (None, "name", jnp.sin), "c": Chosen(jnp.ones(2), jnp.cos)}
    arrays, static = split_arrays(tree)
    assert all(isinstance(x, jax.Array) for x in jax.tree.leaves(arrays))
    whole = static.combine(jax.tree.map(lambda x: 2 * x, arrays))
    assert whole["b"] == tree["b"]
    assert whole["c"].by is jnp.cos
    np.testing.assert_array_equal(whole["c"].weight, 2.0)


@pytest.mark.parametrize("values", [*EQUAL_TO_PYTHON, [np.float32(0.0), np.float32(-0.0), 0]])
def test_what_python_takes_for_equal_is_not(values):
    for a, b in itertools.combinations(values, 2):
        assert StaticPart({"x": a}) != StaticPart({"x": b})
    for a in values:
        assert StaticPart({"x": a}) == StaticPart({"x": a})
        assert hash(StaticPart({"x": a})) == hash(StaticPart({"x": a}))


def test_structure_and_functions_count_and_not_a_number_equals_itself():
    assert StaticPart(["a", "b"]) != StaticPart(("a", "b"))
    assert StaticPart(Chosen(1.0, jnp.sin)) != StaticPart(Chosen(1.0, jnp.cos))
    assert StaticPart([float("nan")]) == StaticPart([float("nan")])
    assert StaticPart([1]) != 1


def test_what_has_no_hash_says_so():
    assert StaticPart(["a"]).is_hashable
    assert not split_arrays([np.ones(2)], lambda x: isinstance(x, jax.Array))[1].is_hashable


@pytest.mark.parametrize("values", EQUAL_TO_PYTHON)
def test_programs_of_fits_are_not_those_of_equal_numbers_of_other_types(values):
    function = lambda x, value: x * float(len(repr(value)))
    program = compile_by_content(function)
    for value in values:
        x = np.arange(3.0)
        np.testing.assert_array_equal(program(jnp.asarray(x), value), function(x, value))
