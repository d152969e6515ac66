"""A snapshot: what observers are given of one instant of a running simulation."""

from typing import ClassVar

import jax
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTerm,
    Aux,
    Cache,
    Clock,
    Module,
    Plan,
    PyTree,
    State,
    static,
)
from physkit.integrators import AbstractIntegrator


class Snapshot(Module):
    """One instant of a running simulation: time, state, and the *running* integrator with its caches.

    Observers read physics from here and never hold a term of their own: a copy made outside would
    keep old parameters, with wrong energies and gradients as the result.

    - `clock`: step, time and step size.
    - `aux`: what the integrator carries: the caches of its terms, as of this instant.
    - `plan`: constants that the integrator has prepared for the run.
    - `is_current`: whether the caches are up to date for this very state, so that no quantity need see to it.
    """

    clock: Clock
    state: State
    aux: Aux
    plan: Plan
    integrator: AbstractIntegrator
    is_current: bool = static(default=False)

    # Said where something else stands for a snapshot.
    advice: ClassVar[str] = (
        "of a state outside of a run: pk.evaluate(simulation, state, name=quantity)"
    )

    @property
    def t(self) -> Float[Array, ""]:
        """Time of this instant."""
        return self.clock.t

    def terms(self) -> tuple[tuple[AbstractTerm, Cache], ...]:
        """The running terms, each with its current cache."""
        terms = self.integrator.terms(self.aux)
        if not self.is_current:
            return terms
        return tuple(
            (term, None if cache is None else term.mark_current(cache, self.state))
            for term, cache in terms
        )

    @property
    def conserves_momentum(self) -> bool:
        """Whether the running integrator keeps the total momentum.

        By default an integrator says so that only knows its forces: one that draws noise of its own does not
        keep it, unless a part removes it.
        """
        if not self.integrator.conserves_momentum:
            return False
        if self.clock.noise_key is None or self._removes_momentum():
            return True
        return not self.integrator.draws_momentum(self.plan, self.clock, self.state, self.aux)

    def _removes_momentum(self) -> bool:
        def removes(part: PyTree) -> bool:
            return isinstance(part, AbstractIntegrator) and part.removes_momentum

        return any(map(removes, jax.tree.leaves(self.integrator, is_leaf=removes)))
