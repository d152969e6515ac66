"""Derivatives of a lattice's steps that are written by hand are those that JAX makes."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.fields.lattice_boltzmann import _collisions
from physkit.fields.lattice_boltzmann._collisions import (
    CellMoments,
    TwoRelaxationTimes,
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
def test_a_collision_is_its_polynomials(lattice, is_pushed, monkeypatch):
    choose = np.random.default_rng(0)
    cells = (3, 4, 2)[: lattice.dimension]
    f = jnp.asarray(0.01 * choose.normal(size=(lattice.size, *cells)))
    excess, momentum = moments_of(lattice, f)
    force = list(jnp.asarray(0.1 * choose.normal(size=(lattice.dimension, *cells))))
    velocity = [m / (1 + excess) for m in momentum]
    moments = CellMoments(excess, 1 + excess, velocity, force if is_pushed else None)
    weights = jnp.asarray(choose.normal(size=f.shape))

    def collide(f, moments, rates):
        return jnp.sum(weights * _relax(lattice, f, moments, *rates))

    def by_polynomials(f, moments, rates):
        half = (rate / 2 for rate in rates)
        return jnp.sum(weights * _relax_by_polynomials(lattice, f, moments, *half))

    arguments = f, moments, (jnp.asarray(1.3), jnp.asarray(0.9))
    made = jax.value_and_grad(by_polynomials, (0, 1, 2))(*arguments)
    shipped = jax.value_and_grad(collide, (0, 1, 2))(*arguments)
    monkeypatch.setattr(_collisions, "with_tangent_of", lambda value, _: value)
    by_jax = jax.value_and_grad(collide, (0, 1, 2))(*arguments)
    for found in (made, shipped):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-13), found, by_jax)


def test_a_relaxation_time_of_each_cell(monkeypatch):
    lattice = LATTICES[0]
    choose = np.random.default_rng(0)
    f = jnp.asarray(0.01 * choose.normal(size=(9, 3, 4)))
    excess, momentum = moments_of(lattice, f)
    moments = CellMoments(excess, 1 + excess, [m / (1 + excess) for m in momentum], None)
    tau = jnp.asarray(choose.uniform(0.6, 1, (1, 3, 4)))

    def collide(tau):
        return jnp.sum(jnp.sin(TwoRelaxationTimes()(lattice, f, moments, tau)))

    found = jax.grad(collide)(tau)
    monkeypatch.setattr(_collisions, "with_tangent_of", lambda value, _: value)
    np.testing.assert_allclose(found, jax.grad(collide)(tau), atol=1e-14)


@pytest.mark.parametrize("kind", ["array", "list"])
@pytest.mark.parametrize("touched", list(itertools.product([True, False], repeat=2)))
def test_what_comes_in_at_sides(kind, touched):
    """Later entries are in the place of earlier ones: where sides meet, and once more at a side."""
    _, state = crowded_channel()
    fluid, lattice = state.fluid.at_time(jnp.asarray(0.3)), state.lattice
    west, _, south, _ = sides_of(fluid, lattice)
    west, south = (
        side._replace(touched=jnp.array(is_touched))
        for side, is_touched in zip((west, south), touched, strict=True)
    )
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
        if touched[0]:
            data = data.at[4, :1].set(values[0])
        if touched[1]:
            data = data.at[4, :, :1].set(values[1])
        if all(touched):
            data = data.at[4, 0, 0].set(values[2][0, 0])
        return data.at[2, :, :1].set(values[4]) if touched[1] else data

    arguments = fluid.data, values
    np.testing.assert_array_equal(enter(*arguments), one_by_one(*arguments))
    weights = jnp.asarray(choose.normal(size=fluid.data.shape))
    found, expected = (
        jax.grad(lambda *x, f=f: jnp.sum(weights * f(*x)), (0, 1))(*arguments)
        for f in (enter, one_by_one)
    )
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_streaming_among_sides_of_all_kinds(platform, monkeypatch):
    if platform == "gpu":
        monkeypatch.setattr(jax.lax, "platform_dependent", lambda *, cpu, default: default())
    _, state = crowded_channel()
    fluid, speed = state.fluid.at_time(jnp.asarray(0.3)), state.lattice_speed

    def streamed(data):
        data = jnp.asarray(data)
        near = Neighborhood(fluid.grid, data)
        return stream_fluid(near, fluid.replace(data=data), state.lattice, speed)

    choose = np.random.default_rng(2)
    along, across, weights = (jnp.asarray(choose.normal(size=fluid.data.shape)) for _ in range(3))
    h = 1e-5

    def pulled(data):
        return jax.vjp(streamed, data)[1](weights)[0]

    # One program: one by one, operations and their derivatives compile for seconds.
    @jax.jit
    def derivatives(data):
        beside = jax.lax.map(lambda s: streamed(data + s * along), jnp.array([h, -h]))
        forward = jax.jvp(streamed, (data,), (along,))[1]
        backward, of_backward = jax.jvp(pulled, (data,), (along,))
        of_forward = jax.jvp(lambda d: jax.jvp(streamed, (d,), (across,))[1], (data,), (along,))[1]
        pulled_beside = jax.lax.map(lambda s: pulled(data + s * along), jnp.array([h, -h]))
        return beside, forward, backward, of_forward, of_backward, pulled_beside

    beside, forward, backward, of_forward, of_backward, pulled_beside = derivatives(fluid.data)
    close = lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6, rtol=1e-6)
    close(forward, (beside[0] - beside[1]) / (2 * h))
    close(np.sum(backward * along), np.sum(weights * forward))
    # Of the second order, forward and backward.
    close(of_backward, (pulled_beside[0] - pulled_beside[1]) / (2 * h))
    close(np.sum(of_backward * across), np.sum(weights * of_forward))
