"""Reversal of a liquid to the last bit."""

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import cast_floats
from physkit.geometry import Box
from physkit.integrators import VelocityVerlet
from physkit.particles import Particles
from physkit.particles.forces import LennardJones, Pairwise
from physkit.simulate import Reversible, Simulation, init, reversibility_report

from .._case import Case, Published

_STEPS = 3000


def reversed_liquid() -> dict[str, float]:
    """64 Lennard-Jones atoms, 3 000 steps forward and as many back, the neighbor list rebuilt in either
    direction at other steps: how many bits of positions and velocities differ, by precision."""
    return {
        "float64": _differing_bits(jnp.float64),
        "float32": _differing_bits(jnp.float32),
    }


def _differing_bits(dtype) -> float:
    edge = 4.6
    corners = np.stack(np.meshgrid(*[np.arange(4)] * 3), -1).reshape(-1, 3)
    velocity = np.random.default_rng(0).normal(size=corners.shape)
    atoms = Particles(
        (corners + 0.5) / 4 * edge, velocity - velocity.mean(0), space=Box([edge] * 3)
    )
    # Cutoff and skin together, 2.1, must stay below half of the edge. `exact`: sums that depend on no order,
    # since lists that are rebuilt on the way back hold the pairs in another one.
    force = Pairwise(LennardJones(), 1.9, 0.2, exact=True)
    sim = Simulation(VelocityVerlet(force), 0.004, guards=(), adjoint=Reversible())
    start = init(sim, cast_floats(atoms, dtype))
    returned = reversibility_report(sim, start, _STEPS).state
    # The integers, not the floats: these are rounded from them and would hide the last bits.
    pairs = zip(*(jax.tree.leaves(s.fixed_point) for s in (returned, start.state)), strict=True)
    return float(sum(np.sum(np.asarray(a) != np.asarray(b)) for a, b in pairs))


CASES = (
    Case(
        "reversal",
        reversed_liquid,
        (Published("float64", 0.0, 0.0), Published("float32", 0.0, 0.0)),
        "exact by construction: Levesque & Verlet 1993",
        slow=True,
    ),
)
