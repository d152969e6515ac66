"""What integrators around another one share: what that one carries, and what it says of itself."""

import equinox as eqx
from jaxtyping import Array, Bool, Float

from physkit.core import Aux, Clock, PyTree, State

from ._integrator import AbstractIntegrator, TermsWithCaches


class AbstractWrapper(AbstractIntegrator):
    """An integrator that makes its step of steps of another one (`integrator`), and ends with one of them.

    By default its aux is that of the integrator inside. One that carries more says where it is:
    `inner_aux`, `with_inner_aux`.
    """

    integrator: eqx.AbstractVar[AbstractIntegrator]

    def inner_aux(self, aux: Aux) -> Aux:
        """What the integrator inside carries."""
        return aux

    def with_inner_aux(self, aux: Aux, inner: Aux) -> Aux:
        """`aux` with another one of the integrator inside."""
        del aux
        return inner

    def is_aux_of(self, state: State, aux: Aux) -> Bool[Array, ""] | None:
        return self.integrator.is_aux_of(state, self.inner_aux(aux))

    def memory(self, aux: Aux) -> PyTree:
        return self.integrator.memory(self.inner_aux(aux))

    def with_memory(self, aux: Aux, memory: PyTree) -> Aux:
        inner = self.integrator.with_memory(self.inner_aux(aux), memory)
        return self.with_inner_aux(aux, inner)

    def is_stale(self, before: State, after: State) -> bool:
        return self.integrator.is_stale(before, after)

    @property
    def keeps_caches_current(self) -> bool:
        return self.integrator.keeps_caches_current

    def terms(self, aux: Aux) -> TermsWithCaches:
        return self.integrator.terms(self.inner_aux(aux))

    @property
    def solves_for_terms(self) -> bool:
        return self.integrator.solves_for_terms

    @property
    def conserves_momentum(self) -> bool:
        return self.integrator.conserves_momentum

    def bath_energy(self, clock: Clock, state: State, aux: Aux) -> Float[Array, ""]:
        return self.integrator.bath_energy(clock, state, self.inner_aux(aux))
