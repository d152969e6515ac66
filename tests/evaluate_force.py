"""Evaluate a force once, as a run does: planned, then force, energy and virial by one program."""

import jax
import numpy as np

from physkit.core import Clock, StepCount

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)


def evaluate(force, state):
    """Force, energy, virial."""
    force = force.for_start(state)

    @jax.jit
    def values(force, state):
        cache = force.init(state)
        return (
            force(CLOCK, state, cache)[0],
            force.energy(CLOCK, state, cache),
            force.virial(CLOCK, state, cache),
        )

    return tuple(np.asarray(x) for x in values(force, state))
