"""Functions at faces by kernels for GPUs, evaluated by XLA's interpreter: numbers and derivatives of XLA's."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.fields.equations.fluid import _shallow_water_fv
from physkit.fields.equations.magnetohydrodynamics import _ideal_mhd
from physkit.fields.finite_volume import _conservation_law, _faces
from physkit.fields.stencils._map_faces import map_faces
from physkit.native import NotTranslatableError, map_on_gpus, map_stencil
from physkit.native.kernels._launch import known_numbers
from physkit.native.kernels._tiles import TileTranslation

from .test_map_faces import (
    LAWS,
    arguments,
    assert_alike,
    assert_as_by_slices,
    formula,
    rate_and_derivatives,
)

# Interpreted kernels, each with its derivatives.
pytestmark = pytest.mark.compiled_quickly

interpreted = partial(map_on_gpus, interpret=True)
# Blocks that are full, that are not, of one face; lines of several blocks.
SHAPES = [(0, (128,)), (0, (1,)), (0, (131,)), (0, (5, 70)), (1, (3, 131)), (1, (2, 3, 65))]
QUICK = ("gas of first order",)


@pytest.mark.parametrize(
    ("axis", "shape"),
    [pytest.param(*s, marks=() if s == SHAPES[4] else pytest.mark.slow) for s in SHAPES],
)
def test_values_and_derivatives_are_those_of_slices(axis, shape):
    assert_as_by_slices(interpreted, axis, shape)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in LAWS]
)
def test_rates_and_their_derivatives_are_those_of_xla(name, monkeypatch):
    law, state = LAWS[name]()
    monkeypatch.setattr(_conservation_law, "kernels_are_used", lambda: True)
    monkeypatch.setattr(
        _conservation_law, "native_or_xla", lambda _, by_xla, *arrays: by_xla(*arrays)
    )
    for module in (_faces, _ideal_mhd, _shallow_water_fv):
        monkeypatch.setattr(module, "native_or_xla", lambda _, by_xla, *arrays, cuda: cuda(*arrays))
        monkeypatch.setattr(module, "map_on_gpus", interpreted)
    kernels, found = rate_and_derivatives(law, state, "pallas_call")
    monkeypatch.undo()
    monkeypatch.setenv("PHYSKIT_NATIVE", "0")
    none, by_xla = rate_and_derivatives(law, state, "pallas_call")
    assert none == 0
    # The exact solver's loop is not translated.
    assert (kernels == 0) == (name == "exact")
    assert_alike(found, by_xla)


def test_numbers_of_several_types_are_left_to_xla():
    arrays = [jnp.zeros((1, 7, 1), dtype) for dtype in (jnp.float32, jnp.float64)]
    with pytest.raises(NotTranslatableError, match="several types"):
        interpreted(lambda cells, _: ([[cells[0][0]]], []), arrays, (1, 1), None)


def test_places_beyond_32_bits_are_left_to_xla():
    array = jax.ShapeDtypeStruct((1, 2**31, 1), np.float32)
    with pytest.raises(NotTranslatableError, match="32 bits"):
        jax.eval_shape(
            lambda x: interpreted(lambda cells, _: ([[cells[0][0]]], []), [x], (1,), None), array
        )


def test_a_gradient_by_parameters_alone():
    arrays, counts, context = arguments(0, (7,))
    scale = context["scale"]

    def loss(scale, by):
        given = context | {"scale": scale}
        return sum(jnp.sum(jnp.sin(x)) for x in map_faces(formula, arrays, counts, given, 0, by))

    @partial(jax.jit, static_argnums=1)
    def derivatives(scale, by):
        of_scale = partial(loss, by=by)
        return jax.grad(of_scale)(scale), jax.hessian(of_scale)(scale)

    found, expected = (derivatives(scale, by) for by in (interpreted, map_stencil))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_numbers_are_read_in_one_order_in_every_process():
    translation = TileTranslation([])
    translation.elements = {f"k{k}": (k, 0) for k in range(20)}
    known = known_numbers(
        translation, set(translation.elements), lambda constant, _: np.int32(constant)
    )
    assert list(known) == list(translation.elements)
