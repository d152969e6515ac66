"""Fluxes that leave density and pressure positive."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import safe_clip, safe_minimum

from ._faces import SolvedLaw, primitive_variables, with_carried
from ._riemann_solvers import Rusanov, Variables

_LEAST = 1e-3  # of what a first-order step would leave


def limit_to_positive(
    law: SolvedLaw,
    positive: Callable[[Variables], tuple[Array, ...]],
    below: Variables,
    above: Variables,
    fluxes: Variables,
    axis: int,
    ratio: Array,
    carried: int = 0,
) -> Variables:
    """Fluxes, as much of them as keeps positive what must be, and a first-order flux for the rest.

        F = θ F + (1 − θ) F₁,   U_i ∓ 2d (dt/h) F positive on both sides of every face

    A cell is the mean of 2d such states: it stays positive where dt |λ_k|/h_k ≤ 1/(2d) along every axis, in
    every stage of a method whose stages are means of Euler steps (SSP). Fluxes stay fluxes: sums are kept.

    **Arguments:**

    - `positive`: conserved variables → what must be positive, one after the other: concave functions, each as
      long as those before are positive.
    - `below`, `above`: conserved variables of the cells on both sides of each face. The last `carried` of them
      flow with the mass: there is as much of them in what remains of a flux.
    - `ratio`: 2d · dt / h.

    **Reference:** Hu, Adams & Shu, J. Comput. Phys. 242, 169 (2013); with every quantity's own concavity
    instead of a search.
    """
    n = len(fluxes) - carried
    sides = (primitive_variables(law, side, carried) for side in (below, above))
    safe = with_carried(law, Rusanov().flux, *sides, carried, axis)

    def after(flux: Variables) -> tuple[tuple[Array, ...], ...]:
        low = tuple(u - ratio * f for u, f in zip(below[:n], flux[:n], strict=True))
        high = tuple(u + ratio * f for u, f in zip(above[:n], flux[:n], strict=True))
        return positive(low), positive(high)

    first = after(safe)
    for k in range(len(first[0])):
        # Each by itself: a pressure means something only where the density is positive already.
        theta = jnp.ones_like(fluxes[0])
        for lowest, value in zip(first, after(fluxes), strict=True):
            floor = _LEAST * lowest[k]
            short = value[k] < floor
            # After too long a step not even the first-order flux leaves anything: it is taken alone.
            leaves_some = lowest[k] > 0
            fall = jnp.where(short & leaves_some, lowest[k] - value[k], 1)
            # Concave: at this θ it is at least the floor.
            part = jnp.where(leaves_some, safe_clip((lowest[k] - floor) / fall, 0, 1), 0)
            theta = jnp.where(short, safe_minimum(theta, part), theta)
        fluxes = tuple(
            jnp.where(theta < 1, f + theta * (g - f), g) for f, g in zip(safe, fluxes, strict=True)
        )
    return fluxes
