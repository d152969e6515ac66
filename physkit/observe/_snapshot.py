"""A snapshot: what observers are given of one instant of a running simulation."""

from jaxtyping import Array, Float

from physkit.core import AbstractTerm, Aux, Cache, Clock, Module, Plan, State
from physkit.integrators import AbstractIntegrator


class Snapshot(Module):
    """One instant of a running simulation: time, state, and the *running* integrator with its caches.

    Observers read physics from here and never hold a term of their own: a copy made outside would
    keep old parameters, with wrong energies and gradients as the result.

    - `clock`: step, time and step size.
    - `aux`: what the integrator carries: the caches of its terms, as of this instant.
    - `plan`: constants that the integrator has prepared for the run.
    """

    clock: Clock
    state: State
    aux: Aux
    plan: Plan
    integrator: AbstractIntegrator

    @property
    def t(self) -> Float[Array, ""]:
        """Time of this instant."""
        return self.clock.t

    def terms(self) -> tuple[tuple[AbstractTerm, Cache], ...]:
        """The running terms, each with its current cache."""
        return self.integrator.terms(self.aux)
