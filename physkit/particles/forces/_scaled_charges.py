"""Forces of charges of which some are scaled: alchemical charging."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from physkit.core import (
    Cache,
    Clock,
    ParameterError,
    PyTree,
    State,
    as_parameter,
    concrete_value,
    data,
    get_component,
    param,
    put_component,
)

from .._arguments import Numbers
from ._force import AbstractForce
from ._wrapped import AbstractWrappedForce


class ScaledCharges(AbstractWrappedForce):
    """Another force, as if the charges of some particles were smaller.

        F(x, q'),   q'_i = λ q_i for the given particles

    Around a force of charges of any kind – `Pairwise(Coulomb())`, `Ewald`, `ParticleMeshEwald` – it turns the
    charges of a solute on and off; forces without charges stay beside it.

    **Arguments:**

    - `inner`: the force.
    - `places`: of the particles whose charges are scaled, whole numbers.
    - `coupling`: λ, from 0 to 1. `EnergyDerivative` gives dU/dλ.

    **Errors:** `ParameterError` for places that do not exist, and for particles without charge.

    **Notes:** charges scaled by λ interact among themselves by λ². Where they do not add up to 0, the system
    has a net charge. On one device.
    """

    inner: AbstractForce
    coupling: Float[Array, ""] = param(1.0)
    places: Int[Array, " k"] = data()

    def __init__(self, inner: AbstractForce, places: Numbers, coupling: ArrayLike = 1.0):
        self.inner, self.coupling = inner, as_parameter(coupling)
        self.places = jnp.atleast_1d(jnp.asarray(places))
        if not jnp.issubdtype(self.places.dtype, jnp.integer):
            raise ParameterError(f"places are whole numbers; got {places}")

    def seen_state(self, state: State) -> State:
        particles = get_component(state, self.inner.components[0])
        particles.require_single_device("ScaledCharges")
        if particles.charge is None:
            raise ParameterError("ScaledCharges scales charges: give Particles(charge=…)")
        numbers = concrete_value(self.places)
        n = particles.num_slots
        if numbers is not None and not ((numbers >= 0) & (numbers < n)).all():
            raise ParameterError(
                f"ScaledCharges names places up to {numbers.max()} of {n} particles"
            )
        # A mask instead of a scatter.
        is_scaled = jnp.any(
            jnp.arange(n, dtype=self.places.dtype)[:, None] == self.places[None], axis=1
        )
        charge = particles.charge * jnp.where(is_scaled, self.coupling, 1)
        moved = particles.replace(charge=charge)
        return put_component(state, self.inner.components[0], moved)

    def __call__(self, clock: Clock, state: State, cache: Cache) -> tuple[PyTree, Cache]:
        return self.inner(clock, self.seen_state(state), cache)

    def force(self, clock: Clock, state: State) -> PyTree:
        return self.inner.force(clock, self.seen_state(state))

    def virial(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, "d d"]:
        return self.inner.virial(clock, self.seen_state(state), cache)

    def particle_energies(
        self, clock: Clock, state: State, cache: Cache = None
    ) -> Float[Array, " n"]:
        return self.inner.particle_energies(clock, self.seen_state(state), cache)

    def heat_flux(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, " d"]:
        return self.inner.heat_flux(clock, self.seen_state(state), cache)
