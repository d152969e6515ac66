"""The cluster algorithm of Swendsen and Wang."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import DeclarationError, State, concrete_value
from physkit.geometry import Grid
from physkit.spins import (
    UNDEFINED,
    AbstractSpinModel,
    PottsModel,
    Spins,
    has_neighbors,
    neighbor_values,
)

from .._integrator import StepSize
from ..baths._targets import Target, as_target
from ._spin_updates import AbstractSpinUpdate, as_model

Bonds = list[Bool[Array, "..."]]  # per axis, whether a site is bonded to the one after it
_FIELD = -1  # the label of the cluster that the field holds


class SwendsenWang(AbstractSpinUpdate):
    """Clusters of like spins take new values together: no slowing down to speak of at T_c.

        a bond between like neighbors with p = 1 − e^{−ΔE/k_B T},   a new value for each cluster, all alike

    ΔE is 2J of the Ising model and J of the Potts model. A field bonds the spins along it to a spin that never
    changes, with the same rule.

        Simulation(SwendsenWang(IsingModel(), temperature=2.269185), dt=1.0)

    **Arguments:**

    - `model`: `IsingModel(…)` or `PottsModel(…)`, with J ≥ 0.
    - `temperature`: k_B T, energy: a number, or a function of time.

    **Errors:** `ParameterError` for a temperature that is not positive; `DeclarationError` for a negative
    coupling, or a Potts model with a negative field: such neighbors share no clusters.

    **Notes:** needs a key. Results are the same on one device and on many, bit by bit: a cluster draws its
    value from (key, step, its first site). Over devices a step exchanges as many halos as the
    longest chain of blocks that a cluster passes through.

    **Reference:** Swendsen & Wang, Phys. Rev. Lett. 58, 86 (1987). Clusters are labeled as by Zhang, Azad & Hu,
    SIAM Conference on Parallel Processing (2020), FastSV.
    """

    model: AbstractSpinModel = eqx.field(converter=as_model)
    temperature: Target = eqx.field(converter=as_target)

    def check_step(self, state: State, dt: StepSize) -> None:
        """**Errors:** `DeclarationError` for a coupling or a field that makes no clusters."""
        super().check_step(state, dt)
        for name in ("coupling", "field"):
            numbers = concrete_value(getattr(self.model, name))
            may_be_negative = name == "field" and not isinstance(self.model, PottsModel)
            if numbers is not None and not may_be_negative and (np.asarray(numbers) < 0).any():
                raise DeclarationError(
                    f"SwendsenWang joins like spins: {name} = {np.min(numbers):g} < 0 makes unlike ones; take "
                    "SpinHeatBath"
                )

    def update(self, key: Array, spins: Spins, temperature: Float[Array, ""]) -> Spins:
        grid, now = spins.grid, spins.data
        for_bonds, for_values = jax.random.split(key)
        # A bond per axis and site, and one to the field.
        drawn = grid.random_uniform(for_bonds, (grid.dimension + 1,))

        def is_bonded(drawn: Array, gain: Array) -> Bool[Array, "..."]:
            return drawn < -jnp.expm1(-gain / temperature)

        pairs = zip(drawn, neighbor_values(grid, now), has_neighbors(grid))
        bonds = [
            is_bonded(u, self.model.bond_gain(now, after)) & present
            for u, (_, after), (_, present) in pairs
        ]
        held = is_bonded(drawn[-1], self.model.field_gain(now))
        labels = cluster_labels(grid, bonds, jnp.where(held, _FIELD, grid.global_index()))

        def draw(label: Int[Array, ""]) -> Float[Array, ""]:
            return jax.random.uniform(jax.random.fold_in(for_values, label), (), drawn.dtype)

        # All sites of a cluster draw the same number, from its label: nothing is sent.
        values = jnp.asarray(self.model.values, now.dtype)
        chosen = (jax.vmap(draw)(labels.reshape(-1)).reshape(labels.shape) * len(values)).astype(
            jnp.int32
        )
        new = values[jnp.minimum(chosen, len(values) - 1)]
        # In a sweep no number can be seen before: no value of a spin is true of a model without clusters.
        new = jnp.where(self._makes_clusters(), new, jnp.asarray(UNDEFINED, new.dtype))
        return spins.with_values(jnp.where(labels == _FIELD, now, new))

    def _makes_clusters(self) -> Bool[Array, ""]:
        least = jnp.min(self.model.coupling)
        if isinstance(self.model, PottsModel):
            least = jnp.minimum(least, jnp.min(self.model.field))
        return least >= 0


def cluster_labels(grid: Grid, bonds: Bonds, labels: Int[Array, "..."]) -> Int[Array, "..."]:
    """For each site the least label in its cluster.

    Clusters are found within the block of each device first; then blocks exchange labels until none changes.

    **Arguments:**

    - `bonds`: per axis, `[*sites]`, whether a site is bonded to the one after it.
    - `labels`: `[*sites]`, one for each site.
    """
    root = _roots(bonds).reshape(-1)

    def least(labels: Array) -> Array:
        """The least label of each part of a cluster within the block, at all of its sites."""
        # Minima of whole numbers: exact, in whatever order they are taken.
        of_root = jnp.full_like(root, np.iinfo(np.int32).max).at[root].min(labels.reshape(-1))
        return of_root[root].reshape(labels.shape)

    before = [pair[0] for pair in _along_own_axis(grid, bonds)]

    def exchange(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        labels, _ = carry
        new = labels
        for k, (low, high) in enumerate(neighbor_values(grid, labels)):
            new = jnp.minimum(new, jnp.where(before[k], low, new))
            new = jnp.minimum(new, jnp.where(bonds[k], high, new))
        new = least(new)
        return new, grid.max((new != labels).astype(jnp.int32)) > 0

    start = least(labels), jnp.ones((), bool)
    return jax.lax.while_loop(lambda carry: carry[1], exchange, start)[0]


def _along_own_axis(grid: Grid, bonds: Bonds) -> list[tuple[Array, Array]]:
    """The bonds along each axis of both neighbors along that axis."""
    return [neighbor_values(grid, bond)[k] for k, bond in enumerate(bonds)]


def _roots(bonds: Bonds) -> Int[Array, "..."]:
    """The first site of each site's cluster, among the bonds within this block: an index of the flat array."""
    shape = bonds[0].shape
    sites = jnp.arange(bonds[0].size, dtype=jnp.int32)
    inner = [
        bond
        & jnp.asarray(
            (np.arange(n) < n - 1).reshape([-1 if j == k else 1 for j in range(len(shape))])
        )
        for k, (bond, n) in enumerate(zip(bonds, shape, strict=True))
    ]

    def least_neighbor(x: Array) -> Array:
        out = x
        for axis, bond in enumerate(inner):
            after = jnp.roll(x, -1, axis)
            out = jnp.minimum(out, jnp.where(bond, after, out))
            out = jnp.minimum(out, jnp.where(jnp.roll(bond, 1, axis), jnp.roll(x, 1, axis), out))
        return out

    def hook(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        parent, _ = carry
        grandparent = parent[parent]
        least = least_neighbor(grandparent.reshape(shape)).reshape(-1)
        # Trees are hooked onto trees with a smaller root, sites onto their neighbors' grandparents: a number of
        # turns that grows as the logarithm of the cluster, not as its length.
        new = parent.at[parent].min(least)
        new = jnp.minimum(jnp.minimum(new, least), grandparent)
        return new, jnp.any(new != parent)

    start = sites, jnp.ones((), bool)
    loop: Callable = jax.lax.while_loop
    return loop(lambda carry: carry[1], hook, start)[0]
