"""Solitons, patterns and wave packets, in small simulations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ParameterError
from physkit.observe import Integral
from physkit.simulate import simulate
from physkit.systems import (
    brusselator,
    burgers_wave,
    coherent_state,
    electromagnetic_cavity,
    fisher_front,
    gray_scott,
    kdv_solitons,
    kuramoto_sivashinsky,
    plucked_string,
    spinodal_decomposition,
    transmission,
    tunneling,
)
from physkit.testing import check_simulation

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_every_system_runs[burgers]",
    "test_every_system_runs[gray-scott]",
    "test_every_system_runs[string]",
    "test_a_string_is_upside_down_after_half_its_period",
    "test_wrong_arguments_are_named",
)

SMALL = {
    "kdv": lambda: kdv_solitons((1.0,), (5.0,), length=10.0, cells=16, dt=0.02, every=2),
    "string": lambda: plucked_string(cells=12, every=2),
    "tunneling": lambda: tunneling(
        packet_width=1.0, length=16.0, cells=16, dt=0.1, every=2
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) for n in SMALL])
def test_systems_pass_the_battery(name):
    sim, state = SMALL[name]()
    conserved = {"mass": (Integral(), 1e-12)} if name == "kdv" else {}
    objective = mean_position if name == "tunneling" else None
    check_simulation(sim, state, 8, conserved=conserved, objective=objective)


def mean_position(psi):
    """⟨x⟩."""
    (x,) = psi.coordinates
    return psi.grid.sum(x * (psi.data.real**2 + psi.data.imag**2))


SYSTEMS = {
    "burgers": lambda: burgers_wave(cells=16, every=2),
    "fisher": lambda: fisher_front(length=10.0, cells=20, every=2),
    "brusselator": lambda: brusselator(length=10.0, cells=(8, 8), every=2),
    "brusselator on a line": lambda: brusselator(length=10.0, cells=(8,), every=2),
    "gray-scott": lambda: gray_scott(cells=(8, 8), every=2),
    "spinodal": lambda: spinodal_decomposition(cells=(8, 8), every=2),
    "kuramoto-sivashinsky": lambda: kuramoto_sivashinsky(cells=16, every=2),
    "coherent": lambda: coherent_state(cells=16, steps=8),
    **SMALL,
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_runs(name):
    sim, state = SYSTEMS[name]()
    result = simulate(sim, state, 4)
    result.health.check()
    frames = jax.tree.leaves(result.frames)
    assert len(frames[0]) in (3, 5)
    assert any(float(jnp.max(abs(f[-1] - f[0]))) > 0 for f in frames)


def test_wrong_arguments_are_named():
    for build, words in (
        (lambda: gray_scott(cells=64), r"cells is a tuple of 2 values, as \(128, 128\); got"),
        (lambda: gray_scott(cells=(8, 8, 8)), "cells is a tuple of 2 values"),
        (lambda: spinodal_decomposition(cells=()), "cells is a tuple of several values"),
        (lambda: spinodal_decomposition(cells=(8, 8.5)), "cells must be a whole number"),
        (lambda: electromagnetic_cavity(modes=3), "modes is a tuple of 2 values"),
        (lambda: kdv_solitons((4.0, 1.0), (15.0,)), "2 speeds, 1 positions"),
        (lambda: kdv_solitons((4.0, -1.0)), "speeds must be positive"),
        (lambda: tunneling(energy=-1.0), "energy must be positive"),
    ):
        with pytest.raises(ParameterError, match=words):
            build()
    assert gray_scott(cells=[8, 8])[1].grid.shape == (8, 8)


def test_a_front_is_faster_for_faster_growth():
    def invaded(growth):
        sim, start = fisher_front(growth, length=10.0, cells=20, every=20)
        return simulate(sim, start, 20).frames["invaded"][-1]

    slope = jax.grad(invaded)(1.2)
    np.testing.assert_allclose(slope, (invaded(1.2 + 1e-5) - invaded(1.2 - 1e-5)) / 2e-5, rtol=1e-6)
    assert slope > 0


def test_transmission_is_smooth_at_the_top_and_1_at_resonance():
    np.testing.assert_allclose(transmission(0.5, 1.0, 2.0), 0.0706508248, atol=1e-10)
    near = [transmission(e, 1.0, 2.0) for e in (1 - 1e-9, 1.0, 1 + 1e-9)]
    np.testing.assert_allclose(near, 1 / 3, atol=1e-8)
    resonance = 1.0 + 0.5 * (np.pi / 2) ** 2
    np.testing.assert_allclose(transmission(resonance, 1.0, 2.0), 1.0, rtol=1e-12)
    assert np.isfinite(jax.grad(transmission)(1.0, 1.0, 2.0))


def test_a_string_is_upside_down_after_half_its_period():
    sim, string = plucked_string(2.0, cells=32, courant=1.0, every=32)
    end = simulate(sim, string, 32).state["displacement"].data
    np.testing.assert_allclose(end, -string["displacement"].data[::-1], atol=1e-14)
