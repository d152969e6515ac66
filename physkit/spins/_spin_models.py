"""Energies of spins: the Ising model and the Potts model."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTerm,
    Clock,
    ComponentError,
    DeclarationError,
    ParameterError,
    State,
    as_count,
    as_parameter,
    concrete_value,
    param,
    require_component,
    static,
)

from ._neighbors import has_neighbors, neighbor_values
from ._spins import Spins


class AbstractSpinModel(AbstractTerm):
    """An energy of spins that sees neighbors along the axes of the lattice.

        E = −J Σ_⟨ij⟩ f(s_i, s_j) − h Σ_i g(s_i)

    A model says which values a spin takes, f and g. It moves nothing by itself: `SpinHeatBath`,
    `SpinMetropolis` and `SwendsenWang` do.
    """

    coupling: eqx.AbstractVar[Float[Array, ""]]
    field: eqx.AbstractVar[Float[Array, ""]]
    component: eqx.AbstractVar[str | None]

    @property
    @abc.abstractmethod
    def values(self) -> tuple[int, ...]:
        """The values of a spin."""

    @abc.abstractmethod
    def alignment(self, a: Array, b: Array) -> Array:
        """f: how much two neighbors agree, a whole number; largest where they are equal."""

    @abc.abstractmethod
    def along_field(self, a: Array) -> Array:
        """g: how much a spin agrees with the field, a whole number."""

    @abc.abstractmethod
    def bond_gain(self, a: Array, b: Array) -> Float[Array, "..."]:
        """The energy that two neighbors lose at least if one of them changes, energy; 0 of unlike ones."""

    @abc.abstractmethod
    def field_gain(self, a: Array) -> Float[Array, "..."]:
        """The energy that a spin along the field loses at least if it changes; 0 for others, energy."""

    @abc.abstractmethod
    def order(self, shares: Float[Array, " q"]) -> Float[Array, ""]:
        """The order parameter of a lattice, from the share of its sites that have each of `values`."""

    def spins_of(self, state: State) -> Spins:
        """The spins that it is about.

        **Errors:** `ComponentError` where the component is something else.
        """
        return require_component(state, self.component, Spins)

    def check_state(self, state: State) -> None:
        """**Errors:** `ComponentError` for spins of other values than the model's."""
        found = concrete_value(self.spins_of(state).data)
        if found is not None and not np.isin(found, self.values).all():
            odd = sorted(set(np.unique(found).tolist()) - set(self.values))
            raise ComponentError(
                f"spins of {type(self).__name__} are among {list(self.values)}; the state has {odd}"
            )

    def local_energies(self, spins: Spins) -> Float[Array, "..."]:
        """The energy that each site would have with each of `values`, its neighbors as they are: `[q, *sites]`.

        That of all bonds of the site and of the field.
        """
        neighbors = neighbor_values(spins.grid, spins.data)
        present = has_neighbors(spins.grid)
        return jnp.stack([self._energy_of(v, neighbors, present, spins) for v in self.values])

    def energy(self, clock: Clock, state: State, cache: None) -> Float[Array, ""]:
        """E, energy: from whole numbers, so that it does not depend on devices."""
        del clock, cache
        spins = self.spins_of(state)
        bonds = []
        pairs = zip(neighbor_values(spins.grid, spins.data), has_neighbors(spins.grid), strict=True)
        # Every bond once: of a site that to the neighbor after it.
        for (_, after), (_, present) in pairs:
            agreement = self.alignment(spins.data, after).astype(jnp.int32)
            bonds.append(spins.grid.sum(jnp.where(present, agreement, 0)))
        total = sum(bonds[1:], bonds[0])
        field = spins.grid.sum(self.along_field(spins.data).astype(jnp.int32))
        dtype = self.coupling.dtype
        return -self.coupling * total.astype(dtype) - self.field * field.astype(dtype)

    def __call__(self, clock: Clock, state: State, cache: None) -> tuple[None, None]:
        """**Errors:** `DeclarationError`: an energy of spins is no rate."""
        raise DeclarationError(
            f"{type(self).__name__} is an energy, no rate: SpinHeatBath and SwendsenWang take it"
        )

    # --- inside ---------------------------------------------------------------------------------

    def _energy_of(self, value: int, neighbors: list, present: list, spins: Spins) -> Array:
        own = jnp.asarray(value, spins.data.dtype)
        bonds = jnp.zeros(spins.data.shape, spins.data.dtype)
        for values, where in zip(neighbors, present, strict=True):
            for other, exists in zip(values, where, strict=True):
                bonds = bonds + jnp.where(exists, self.alignment(own, other), 0).astype(bonds.dtype)
        dtype = self.coupling.dtype
        return -self.coupling * bonds.astype(dtype) - self.field * self.along_field(own).astype(
            dtype
        )


class IsingModel(AbstractSpinModel):
    """The Ising model: spins up and down, whose neighbors like to be equal.

        E = −J Σ_⟨ij⟩ s_i s_j − h Σ_i s_i,   s = ±1

    In the plane it orders below k_B T_c = 2 J / ln(1 + √2) = 2.269185314213 J.

    **Arguments:**

    - `coupling`: J, energy; negative for an antiferromagnet.
    - `field`: h, energy.
    - `component`: the name of the spins, where the state has several components.

    **Reference:** Onsager, Phys. Rev. 65, 117 (1944).
    """

    coupling: Float[Array, ""] = param(1.0)
    field: Float[Array, ""] = param(0.0)
    component: str | None = static(default=None)

    @property
    def values(self) -> tuple[int, ...]:
        return (-1, 1)

    def alignment(self, a: Array, b: Array) -> Array:
        return a * b

    def along_field(self, a: Array) -> Array:
        return a

    def order(self, shares: Float[Array, " q"]) -> Float[Array, ""]:
        return shares[1] - shares[0]

    def bond_gain(self, a: Array, b: Array) -> Float[Array, "..."]:
        return jnp.where(a == b, 2 * self.coupling, 0)

    def field_gain(self, a: Array) -> Float[Array, "..."]:
        return jnp.maximum(2 * self.field * a.astype(self.field.dtype), 0)


class PottsModel(AbstractSpinModel):
    """The Potts model: q values, of which neighbors like to have the same.

        E = −J Σ_⟨ij⟩ δ(s_i, s_j) − h Σ_i δ(s_i, 0),   s = 0 … q − 1

    In the plane it orders below k_B T_c = J / ln(1 + √q): continuously up to q = 4, with a jump of the energy
    beyond. q = 2 is the Ising model with J/2.

    **Arguments:**

    - `states`: q, 2 to 127.
    - `coupling`: J, energy.
    - `field`: h, energy, of the value 0.
    - `component`: the name of the spins, where the state has several components.

    **Errors:** `ParameterError` for another number of states.

    **Reference:** Potts, Proc. Camb. Phil. Soc. 48, 106 (1952); Wu, Rev. Mod. Phys. 54, 235 (1982), for T_c.
    """

    states: int = static()
    coupling: Float[Array, ""] = param(1.0)
    field: Float[Array, ""] = param(0.0)
    component: str | None = static(default=None)

    def __init__(
        self,
        states: int,
        coupling: ArrayLike = 1.0,
        field: ArrayLike = 0.0,
        component: str | None = None,
    ):
        self.states = as_count(states, "states", ParameterError)
        if not 2 <= self.states <= 127:
            raise ParameterError(f"a Potts spin has 2 to 127 states; got {states}")
        self.coupling, self.field = as_parameter(coupling), as_parameter(field)
        self.component = component

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(range(self.states))

    def alignment(self, a: Array, b: Array) -> Array:
        return (a == b).astype(jnp.int8)

    def along_field(self, a: Array) -> Array:
        return (a == 0).astype(jnp.int8)

    def order(self, shares: Float[Array, " q"]) -> Float[Array, ""]:
        q = self.states
        return (q * jnp.max(shares) - 1) / (q - 1)

    def bond_gain(self, a: Array, b: Array) -> Float[Array, "..."]:
        return jnp.where(a == b, self.coupling, 0)

    def field_gain(self, a: Array) -> Float[Array, "..."]:
        # Against a negative field a single value has nothing to lose to all others: `SwendsenWang` refuses it.
        return jnp.where(a == 0, self.field, 0)
