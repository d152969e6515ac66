"""Sums of sums become one sum where nothing else needs the inner one, and nothing else changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.simulate.adjoint.packing._nested_sums import merge_nested_sums
from physkit.simulate.adjoint.packing._traced_program import TracedProgram

A = np.sin(np.arange(12 * 20 * 16.0)).reshape(12, 20, 16)
ALONG = np.linspace(0.5, 2.0, 12)


def of_lines(a, c):
    """Lines of cells, then all of them, with a factor of each line and one of all."""
    lines = -jnp.sum(a[..., 0], axis=1)
    return [jnp.sum(2 * lines), jnp.sum(2 * c * lines), jnp.sum(lines[:, None] * c[:, None])]


def of_planes(a, c):
    """Over one axis, then another, then the last; axes of length 1 come and go."""
    planes = jnp.sum(a, axis=2)
    lines = jnp.sum(planes[:, None] * c[:, None, None], axis=2)
    return [jnp.sum(lines[:, 0] * c), jnp.sum(lines, axis=(0, 1))]


def of_columns(a, c):
    """The axis that is left is the last of the array; complex numbers."""
    columns = jnp.sum(jax.lax.complex(jnp.cos(a), a), axis=(0, 1))
    turned = jax.lax.complex(c[0], c[1]) * columns
    return [jnp.sum(turned[:, None]), c]


def needed_elsewhere(a, c):
    """The inner sum is a result, is squared, is a factor of another, or is read by what is no sum."""
    lines = jnp.sum(a[..., 0], axis=1)
    others = jnp.sum(a[..., 1], axis=1)
    squared = jnp.sum(a[..., 2], axis=1)
    read = jnp.sum(a[..., 3], axis=1)
    return [
        lines,
        jnp.sum(lines * c),
        jnp.sum(others * lines),
        jnp.sum(squared * squared),
        jnp.sum(read) + jnp.max(read),
    ]


def num_sums(program):
    return sum(x.equation.primitive.name == "reduce_sum" for x in program.operations)


def evaluate(program, *inputs):
    values = program.constants | dict(zip(program.inputs, inputs, strict=True))
    for operation in program.operations:
        operation.evaluate(values)
    return [values[x] for x in program.results]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("function", "before", "after"),
    [(of_lines, 4, 3), (of_planes, 4, 2), (needed_elsewhere, 8, 8), (of_columns, 2, 1)],
)
def test_values_stay_and_inner_sums_go(function, before, after, dtype):
    inputs = jnp.asarray(A, dtype), jnp.asarray(ALONG, dtype)
    program = TracedProgram.trace(function, *inputs)
    assert num_sums(program) == before
    merge_nested_sums(program)
    assert num_sums(program) == after
    rounding = 300 * np.finfo(dtype).eps
    for a, b in zip(evaluate(program, *inputs), function(*inputs), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=rounding, atol=rounding * 10)


def test_a_program_without_sums_of_sums_is_left_as_it_is():
    program = TracedProgram.trace(lambda a: [jnp.sum(a), jnp.sum(a, axis=0)], jnp.asarray(A))
    operations = program.operations
    merge_nested_sums(program)
    assert program.operations is operations


def test_the_center_of_a_body_takes_one_sum_for_each_component():
    """Both squares are sums along an axis first."""
    x, y = jnp.linspace(0, 1, 30)[:, None], jnp.linspace(0, 1, 40)[None]
    weights = jnp.sin(40 * x * y)

    def transpose(center, cotangent):
        distance = lambda center: jnp.sqrt((x - center[0]) ** 2 + (y - center[1]) ** 2)
        return list(jax.vjp(distance, center)[1](cotangent))

    program = TracedProgram.trace(transpose, jnp.array([0.3, 1.4]), weights)
    assert num_sums(program) == 4
    merge_nested_sums(program)
    assert num_sums(program) == 2
    inputs = jnp.array([0.3, 1.4]), weights
    np.testing.assert_allclose(evaluate(program, *inputs), transpose(*inputs), rtol=1e-5)
