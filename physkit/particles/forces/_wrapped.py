"""Forces around another force, which sees the state in its own way."""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from physkit.core import Cache, Clock, State, replace_fields

from ._force import AbstractForce


class AbstractWrappedForce(AbstractForce):
    """A force that asks another one, `inner`, which may see the state otherwise than it is.

    Write `seen_state`, `__call__` and `force`: what becomes of the inner force. The cache is that of `inner`.
    """

    inner: eqx.AbstractVar[AbstractForce]

    @abc.abstractmethod
    def seen_state(self, state: State) -> State:
        """What `inner` sees instead of `state`."""

    @property
    def component(self) -> str | tuple[str, ...] | None:
        return self.inner.component

    @property
    def components(self) -> tuple[str | None, ...]:
        return self.inner.components

    @property
    def conserves_momentum(self) -> bool:
        return self.inner.conserves_momentum

    @property
    def needs_halo(self) -> bool:
        return self.inner.needs_halo

    def for_shape_inference(self) -> "AbstractWrappedForce":
        return replace_fields(self, {"inner": self.inner.for_shape_inference()})

    def for_start(self, state: State, least: int = 0) -> "AbstractWrappedForce":
        return replace_fields(self, {"inner": self.inner.for_start(self.seen_state(state), least)})

    def check_state(self, state: State) -> None:
        self.inner.check_state(self.seen_state(state))

    def check_time(self, state: State, t: Float[Array, ""]) -> None:
        self.inner.check_time(self.seen_state(state), t)

    def require_reversible(self, state: State) -> None:
        self.inner.require_reversible(self.seen_state(state))

    def init(self, state: State) -> Cache:
        return self.inner.init(self.seen_state(state))

    def fit_cache(self, cache: Cache) -> Cache:
        return self.inner.fit_cache(cache)

    def energy(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, ""]:
        return self.inner.energy(clock, self.seen_state(state), cache)
