"""Garbage is not collected inside of blocks, and as before after the last of them."""

import gc
import threading

import jax
import jax.numpy as jnp
import pytest

import physkit as pk
from physkit.simulate.loop._garbage import without_garbage_collection

from .problems import particles, springs


def test_collection_goes_on_after_the_outermost_block():
    assert gc.isenabled()
    with without_garbage_collection():
        with without_garbage_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_blocks_that_compile_nothing_leave_it_on():
    with without_garbage_collection(compiles=False):
        assert gc.isenabled()


def test_collection_goes_on_after_an_error():
    with pytest.raises(ValueError, match="inside"), without_garbage_collection():
        raise ValueError("inside")
    assert gc.isenabled()


def test_who_has_switched_it_off_keeps_it_off():
    gc.disable()
    try:
        with without_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_blocks_of_two_threads_that_overlap():
    first_is_open, second_is_open = threading.Event(), threading.Event()

    def open_first():
        with without_garbage_collection():
            first_is_open.set()
            second_is_open.wait(10)

    thread = threading.Thread(target=open_first)
    thread.start()
    first_is_open.wait(10)
    with without_garbage_collection():
        second_is_open.set()
        thread.join()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_off_while_a_gradient_of_ones_own_is_traced():
    enabled = []

    def energy_of(now):
        enabled.append(gc.isenabled())
        return now.t

    def loss(sim, state):
        return jnp.sum(pk.simulate(sim, state, 2).state.position)

    sim = springs(observers=pk.observe.Every(1, energy=energy_of))
    jax.jit(jax.grad(loss, allow_int=True)).lower(sim, particles())
    assert enabled
    assert not any(enabled)
    assert gc.isenabled()


def test_a_run_leaves_it_on():
    sim, state = pk.systems.lorenz()
    pk.run(sim, state, 2 * sim.observation_period, progress=False)
    assert gc.isenabled()
