"""What forces between particles closer than a cutoff have in common: all that concerns their list."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Int

from physkit.core import (
    ParameterError,
    State,
    concrete_value,
    describe,
    is_concrete,
    replace_fields,
)

from .._particles import Particles
from ..neighbors import (
    DEFAULT_SKIN,
    ListPlan,
    NeighborList,
    ShardedNeighborList,
    plan_list,
    require_max_cutoff,
)
from ._force import AbstractForce


class AbstractListedForce(AbstractForce):
    """A force between all particles closer than `cutoff`, by a neighbor list in the cache's `neighbors`.

    Cutoff, skin and capacity are static: they shape the compiled program.

    - `plan`: what `for_start` chose for a list that is built where numbers are hidden.
    - `needs_reverse`: whether the list must know each pair's column seen from its other end.
    """

    conserves_momentum: ClassVar[bool] = True

    needs_reverse: eqx.AbstractClassVar[bool]
    cutoff: eqx.AbstractVar[float | None]
    skin: eqx.AbstractVar[float | None]
    capacity: eqx.AbstractVar[int | None]
    plan: eqx.AbstractVar[ListPlan | None]

    @abc.abstractmethod
    def require_valid(self, particles: Particles) -> None:
        """**Errors:** `ParameterError` for particles that lack what the force depends on."""

    def keeps_list(self, particles: Particles) -> bool:
        """Whether there is a list at all."""
        del particles
        return True

    def excluded_by_particle(self, particles: Particles) -> Int[Array, "n e"] | None:
        """For each particle those that are left out of its row, n for no more; None where all pairs count."""
        del particles

    @property
    def needs_halo(self) -> bool:
        return True

    def for_shape_inference(self) -> "AbstractListedForce":
        # No shape of a frame depends on the list's capacity, and a small one traces faster.
        return replace_fields(self, {"capacity": 1})

    def for_start(self, state: State, least: int = 0) -> "AbstractListedForce":
        particles = self.particles(state)
        self.require_valid(particles)
        if self.cutoff is None or particles.is_distributed or particles.num_particles == 0:
            return self
        if not self.keeps_list(particles):
            # In a trace, which hides the box, it is a fault.
            if is_concrete(particles.space):
                require_max_cutoff(particles.space, particles.dimension, self.cutoff)
            return self
        plan = plan_list(
            particles, self.cutoff, self.skin, self.capacity, least, self.needs_reverse
        )
        return replace_fields(self, {"plan": plan})

    def fit_cache(self, cache: Any) -> Any:
        if self.plan is None or self.capacity is not None:
            return cache
        assert isinstance(cache.neighbors, NeighborList)
        return replace_fields(cache, {"neighbors": cache.neighbors.fit_capacity()})

    def update_cache(self, cache: Any, particles: Particles) -> Any:
        """`cache` with neighbors that are up to date. A list that leaves out other pairs is built again.

        **Errors:** `ParameterError` for a list that cannot be that of this force: of a shorter cutoff, or with
        a table of excluded pairs of another shape.
        """
        near = cache.neighbors
        if isinstance(near, NeighborList | ShardedNeighborList):
            excluded = self.excluded_by_particle(particles)
            if self.cutoff is None or near.cutoff < self.cutoff:
                reach = "of all pairs" if self.cutoff is None else f"with cutoff={self.cutoff:g}"
                what = f"holds pairs within {near.cutoff:g}, and the force is {reach}"
            elif np.shape(near.excluded) != np.shape(excluded):
                what = "and the force do not leave out the same pairs (exclude=…)"
            else:
                what = None
            if what is not None:
                raise ParameterError(
                    f"the neighbor list in this carry is of another simulation: it {what}; start from "
                    "carry.state"
                )
            if excluded is not None:
                cache = replace_fields(cache, {"neighbors": _leave_out(near, excluded)})
        return cache.update(particles)

    def mark_current(self, cache: Any, state: State) -> Any:
        return replace_fields(cache, {"current": self.particles(state)})

    def with_common_skin(self, states: Sequence[State]) -> "AbstractListedForce":
        """This force with a skin that the boxes of all these states allow, unless it was given one.

        For sweeps: the reach of a list is part of the compiled program, so that all members must share it. A
        state whose box is too small even for the cutoff does not count; that member fails by itself.
        """
        if self.cutoff is None or self.skin is not None:
            return self
        boxes = [self.particles(state) for state in states]
        limits = np.array([float(b.space.max_cutoff(b.dimension)) for b in boxes])
        slack = limits[limits >= self.cutoff] - self.cutoff
        if len(slack) and slack.min() < DEFAULT_SKIN * self.cutoff:
            # Slightly less than the box allows, so that rounding does not decide.
            return replace_fields(self, {"skin": float(max(0.0, slack.min() * (1 - 1e-6)))})
        return self


def _leave_out(
    near: NeighborList | ShardedNeighborList, excluded: Int[Array, "n e"]
) -> NeighborList | ShardedNeighborList:
    """`near` with this table of excluded pairs, to be built again where it was built by another one."""
    assert near.excluded is not None  # they have one shape
    is_other = jnp.any(near.excluded != excluded)
    changes: dict[str, Any] = {"excluded": excluded}
    if isinstance(near, NeighborList):
        stale = near.pairs.stale | is_other
        changes["pairs"] = replace_fields(near.pairs, {"stale": stale})
    else:
        changes["stale"] = near.stale | is_other
    return replace_fields(near, changes)


def as_length(name: str, value: ArrayLike | None, above: float | None = None) -> float | None:
    """`value` as a number of the host.

    **Errors:** `ParameterError` for what is no length, or is traced.
    """
    if value is None:
        return None
    if isinstance(value, str) or np.ndim(value):
        raise ParameterError(f"{name} must be one length, a number; got {describe(value)}")
    number = concrete_value(value)
    if number is None:
        raise ParameterError(
            f"{name} is static (the compiled program depends on it): give a number, not a traced value"
        )
    number = float(number)
    if not (number > above if above is not None else number >= 0):
        raise ParameterError(f"{name} must be a positive length; got {number}")
    return number
