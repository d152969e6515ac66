"""Evaluate a force once, as a run does: planned, then force, energy and virial by one program."""

import jax
import numpy as np

from physkit.core import Clock, StepCount

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)


@jax.jit
def _values(force, state):
    cache = force.init(state)
    return (
        force(CLOCK, state, cache)[0],
        force.energy(CLOCK, state, cache),
        force.virial(CLOCK, state, cache),
    )


def evaluate(force, state):
    """Force, energy, virial. Forces that differ in numbers alone share a program."""
    return tuple(np.asarray(x) for x in _values(force.for_start(state), state))
