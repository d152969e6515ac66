"""Derivatives of a lattice's steps that are written by hand are those that JAX makes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from physkit.fields.lattice_boltzmann._collisions import (
    CellMoments,
    _relax,
    _relax_by_polynomials,
)
from physkit.fields.lattice_boltzmann._lattice import Lattice
from physkit.fields.lattice_boltzmann._moments import moments_of
from physkit.fields.lattice_boltzmann._neighborhood import Neighborhood
from physkit.fields.lattice_boltzmann._sides import Entry, put, sides_of
from physkit.fields.lattice_boltzmann._streaming import stream_fluid
from tests.fields.test_lattice_boltzmann import crowded_channel

LATTICES = [Lattice(2, 2), Lattice(3, 2), Lattice(3, 3)]


@pytest.mark.parametrize("lattice", LATTICES, ids=repr)
@pytest.mark.parametrize("is_pushed", [False, True])
def test_a_collision_is_its_polynomials(lattice, is_pushed):
    choose = np.random.default_rng(0)
    cells = (3, 4, 2)[: lattice.dimension]
    f = jnp.asarray(0.01 * choose.normal(size=(lattice.size, *cells)))
    excess, momentum = moments_of(lattice, f)
    force = list(jnp.asarray(0.1 * choose.normal(size=(lattice.dimension, *cells))))
    velocity = [m / (1 + excess) for m in momentum]
    moments = CellMoments(excess, 1 + excess, velocity, force if is_pushed else None)
    found = _relax_by_polynomials(lattice, f, moments, jnp.asarray(0.65), jnp.asarray(0.45))
    expected = _relax(lattice, f, moments, jnp.asarray(1.3), jnp.asarray(0.9))
    np.testing.assert_allclose(found, expected, atol=1e-15)


@pytest.mark.parametrize("kind", ["array", "list"])
@pytest.mark.parametrize("is_touched", [True, False])
def test_what_comes_in_at_sides(kind, is_touched):
    """Later entries are in the place of earlier ones: where sides meet, and once more at a side."""
    _, state = crowded_channel()
    fluid, lattice = state.fluid.at_time(jnp.asarray(0.3)), state.lattice
    sides = [side._replace(touched=jnp.array(is_touched)) for side in sides_of(fluid, lattice)]
    west, _, south, _ = sides
    places = [(4, (west,)), (4, (south,)), (4, (west, south)), (2, (south,)), (2, (south,))]
    choose = np.random.default_rng(1)
    sizes = [west.layer(fluid.data[0]), south.layer(fluid.data[0]), jnp.zeros((1, 1))]
    sizes += [sizes[1], sizes[1]]
    values = [jnp.asarray(choose.normal(size=x.shape)) for x in sizes]

    def enter(data, values):
        entries = [Entry(i, at, v) for (i, at), v in zip(places, values, strict=True)]
        each = put(data if kind == "array" else list(data), entries)
        return jnp.stack(each) if kind == "list" else each

    def one_by_one(data, values):
        if not is_touched:
            return data
        data = data.at[4, :1].set(values[0]).at[4, :, :1].set(values[1])
        data = data.at[4, 0, 0].set(values[2][0, 0])
        return data.at[2, :, :1].set(values[4])

    arguments = fluid.data, values
    np.testing.assert_array_equal(enter(*arguments), one_by_one(*arguments))
    weights = jnp.asarray(choose.normal(size=fluid.data.shape))
    found, expected = (
        jax.grad(lambda *x, f=f: jnp.sum(weights * f(*x)), (0, 1))(*arguments)
        for f in (enter, one_by_one)
    )
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_streaming_among_sides_of_all_kinds():
    _, state = crowded_channel()
    fluid, speed = state.fluid.at_time(jnp.asarray(0.3)), state.lattice_speed

    def streamed(data):
        data = jnp.asarray(data)
        near = Neighborhood(fluid.grid, data)
        return stream_fluid(near, fluid.replace(data=data), state.lattice, speed)

    check_grads(streamed, (fluid.data,), order=2, modes=["fwd", "rev"], atol=1e-6, rtol=1e-6)
