"""Energy minimization: known minima, terrible starts, and what it refuses."""

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Clock, ConvergenceError, OverlapError, ParameterError, StepCount
from physkit.geometry import Box
from physkit.particles import (
    MinimizationResult,
    Particles,
    lattice,
    minimize,
    random_positions,
)
from physkit.particles.forces import (
    WCA,
    ExternalForce,
    HarmonicBonds,
    HarmonicTrap,
    LennardJones,
    Modulated,
    Pairwise,
)

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_dimer_relaxes_to_the_potential_minimum[float32]",
    "test_random_overlaps_are_removed[float64-False]",
    "test_no_steps_where_the_force_is_zero",
    "test_the_minimum_is_the_same_in_any_units",
    "test_bad_input_and_failures[<lambda>-ConvergenceError-largest force is 0.9.* after 3 steps]",
)

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)


def test_dimer_relaxes_to_the_potential_minimum(dtype):
    """To 2^(1/6) σ and energy −ε, from a violent overlap."""
    pair = Particles(jnp.asarray([[0.0, 0.0, 0.0], [0.05, 0.03, 0.0]], dtype))
    force = Pairwise(LennardJones(), cutoff=None)
    found = minimize(force, pair, max_move=0.1)
    r = jnp.linalg.norm(found.state.position[1] - found.state.position[0])
    assert found.state.position.dtype == dtype
    np.testing.assert_allclose(r, 2 ** (1 / 6), atol=1e-4)
    assert found.converged
    assert found.max_force <= found.allowed_force < 2e-3
    assert found.steps < 2000


def test_crystal_relaxes_to_its_lattice():
    position, box = lattice.face_centered_cubic(3, density=1.05)
    shaken = position + 0.08 * np.random.default_rng(0).normal(size=position.shape)
    force = Pairwise(LennardJones(), cutoff=2.2, skin=0.1)
    found = minimize(force, Particles(shaken, space=box), tolerance=1e-9)
    moved = box.displacement(found.state.position, box.wrap(position))
    np.testing.assert_allclose(moved - jnp.mean(moved, axis=0, keepdims=True), 0, atol=1e-6)


@pytest.mark.parametrize("exact", [False, True])
def test_random_overlaps_are_removed(key, dtype, exact):
    box = Box(jnp.full(3, 5.5, dtype))
    start = Particles(random_positions(key, 100, box), space=box)
    force = Pairwise(WCA(), cutoff=1.1225, exact=exact)
    found = minimize(force, start)
    x = found.state.position
    r = jnp.linalg.norm(box.displacement(x[:, None], x[None]), axis=-1)
    assert float(jnp.min(r + 9 * jnp.eye(100, dtype=dtype))) > 1.0
    assert found.max_force <= found.allowed_force


def test_overflowing_lists_grow():
    """A list with too little room is grown on the way, and changes nothing."""
    box = Box([7.0, 7.0])
    start = Particles(random_positions(2, 40, box), space=box)
    wide, short = (
        minimize(Pairwise(LennardJones(), 2.5, 0.3, capacity=c), start, tolerance=1e-7).state
        for c in (39, 2)
    )
    np.testing.assert_allclose(short.position, wide.position, atol=1e-6)


def test_bonded_chain_in_a_trap_relaxes():
    """A chain of stiff springs in a weak trap: all bonds at rest at nearly their length."""
    start = Particles(np.random.default_rng(1).uniform(0, 8, (10, 2)))
    force = HarmonicBonds([[i, i + 1] for i in range(9)], 100.0, 1.0) + HarmonicTrap(0.01)
    found = minimize(force, start).state.position
    lengths = jnp.linalg.norm(found[1:] - found[:-1], axis=1)
    np.testing.assert_allclose(lengths, 1.0, atol=2e-2)


def test_several_components_and_frozen_particles():
    state = {
        "a": Particles([[1.0], [2.0]], [[5.0], [6.0]], frozen=[False, True]),
        "b": Particles([[3.0, 1.0]]),
    }
    force = HarmonicTrap(2.0, component="a") + HarmonicTrap([30.0, 0.3], [1.0, 0.0], component="b")
    found = minimize(force, state, tolerance=1e-7).state
    np.testing.assert_allclose(found["a"].position, [[0.0], [2.0]], atol=1e-5)
    np.testing.assert_allclose(found["b"].position, [[1.0, 0.0]], atol=1e-4)
    np.testing.assert_array_equal(found["a"].velocity, state["a"].velocity)


def test_no_steps_where_the_force_is_zero():
    found = minimize(HarmonicTrap(2.0), Particles(jnp.zeros((3, 2))), max_move=0.1)
    assert found.steps == 0
    assert found.max_force == 0


def test_no_move_is_longer_than_allowed():
    start = Particles([[5.0]])
    one = minimize(HarmonicTrap(1e9), start, steps=1, max_move=0.1, must_converge=False)
    many = minimize(HarmonicTrap(1e9), start, steps=9, max_move=0.1, must_converge=False)
    assert 0 < float(5 - one.state.position[0, 0]) <= 0.1
    assert float(5 - many.state.position[0, 0]) <= 0.9
    assert many.steps == 9
    assert not many.converged


def test_forces_are_taken_at_the_given_time():
    force = Modulated(ExternalForce(lambda t, p: 1 - p.position), 1.0)
    start = Particles([[1.5]])
    assert minimize(force, start, t=np.pi / 2, max_move=0.1, allowed_force=1e-9).steps == 0
    found = minimize(force, Particles([[1.5]]), max_move=0.1).state
    np.testing.assert_allclose(found.position, [[1.0]], atol=1e-3)


# ε and σ of argon in SI units, and in its own.
UNITS = {"SI": (1.65e-21, 3.4e-10), "reduced": (1.0, 1.0)}
CLUSTER = (np.stack(np.meshgrid(*[np.arange(2)] * 3), -1).reshape(-1, 3) + 0.5) * 1.2


def relaxed(units, **settings):
    epsilon, sigma = UNITS[units]
    shaken = sigma * (CLUSTER + 0.2 * np.random.default_rng(0).uniform(-1, 1, CLUSTER.shape))
    force = Pairwise(LennardJones(epsilon, sigma), cutoff=None)
    return minimize(force, Particles(jnp.asarray(shaken)), **settings), sigma, force


def test_the_minimum_is_the_same_in_any_units():
    """Particles in SI are moved by forces of 1e-12 N: no absolute number may stop them."""
    (reduced, _, _), (si, sigma, _) = relaxed("reduced"), relaxed("SI")
    assert si.steps > 20
    assert si.converged
    assert abs(si.steps - reduced.steps) <= 5
    r, r_si = (jnp.linalg.norm(x[:1] - x[1:], axis=1) for x in (
        reduced.state.position, si.state.position / sigma))  # fmt: skip
    np.testing.assert_allclose(r_si, r, atol=1e-4)


def test_an_allowed_force_is_absolute():
    found, _, _ = relaxed("reduced", allowed_force=2.0)
    assert found.allowed_force == 2.0
    assert found.converged
    assert found.max_force > 1e-2


def test_what_is_at_rest_stays_there():
    """The stiffness is measured beside the state, not by moving it."""
    found, _, force = relaxed("reduced", tolerance=1e-6)
    again = minimize(force, found.state, tolerance=2e-6)
    assert again.steps == 0
    np.testing.assert_array_equal(again.state.position, found.state.position)


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda: minimize(HarmonicTrap(), Particles([[1.0]])), ParameterError, "max_move"),
        (lambda: minimize(HarmonicTrap(), Particles([[1.0]]), steps=0), ParameterError, "steps"),
        (
            lambda: minimize(HarmonicTrap(), Particles([[1.0]]), max_move=0.01, steps=3),
            ConvergenceError,
            "largest force is 0.9.* after 3 steps",
        ),
        (
            lambda: minimize(
                Pairwise(LennardJones(), None), Particles(jnp.ones((2, 2))), max_move=0.1
            ),
            OverlapError,
            "same spot",
        ),
    ],
)
def test_bad_input_and_failures(act, error, words):
    with pytest.raises(error, match=words):
        act()


def test_a_result_prints_as_a_line():
    shown = repr(MinimizationResult(None, 0.123456, 7, True, 0.5))
    assert shown.startswith(
        "MinimizationResult: converged after 7 steps, largest force 0.123 (allowed 0.5)"
    )
