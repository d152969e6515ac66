"""Quantities of spins: energy, magnetization, the spins themselves."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import StorageKind, require_component, static
from physkit.spins import AbstractSpinModel, Spins

from .._observer import AbstractQuantity
from .._selection import select_term
from .._snapshot import Snapshot


class SpinEnergy(AbstractQuantity):
    """E of the running model of spins, of the whole lattice.

    **Arguments:** `component`: the name of the spins, where there are several components.

    **Returns:** a scalar, energy.

    **Errors:** `ObserverError` unless the integrator holds one model of these spins.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        return _model(snapshot, self.component).energy(snapshot.clock, snapshot.state, None)


class Magnetization(AbstractQuantity):
    """How far the spins are ordered, per site.

        m = (1/N) Σ s_i of Ising spins, −1 … 1;   m = (q max_v n_v/N − 1)/(q − 1) of Potts spins, 0 … 1

    with n_v the number of spins of value v.

    **Arguments:** `component`: the name of the spins, where there are several components.

    **Returns:** a scalar.

    **Errors:** `ObserverError` unless the integrator holds one model of these spins.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        model = _model(snapshot, self.component)
        spins = require_component(snapshot.state, model.component, Spins)
        counts = [spins.grid.sum((spins.data == value).astype(jnp.int32)) for value in model.values]
        shares = jnp.stack(counts).astype(model.coupling.dtype) / spins.num_sites
        return model.order(shares)


class SpinValues(AbstractQuantity):
    """The spins.

    **Arguments:** `component`: the name of the spins, where there are several components.

    **Returns:** `[*sites]`, whole numbers.

    **Errors:** `ComponentError` when the component is something else.
    """

    component: str | None = static(default=None)
    storage_kind: ClassVar[StorageKind] = StorageKind.FIELD

    def __call__(self, snapshot: Snapshot) -> Int[Array, "*sites"]:
        return require_component(snapshot.state, self.component, Spins).data


def _model(snapshot: Snapshot, component: str | None) -> AbstractSpinModel:
    kinds = "one model of spins, as SwendsenWang(IsingModel(), …) holds"
    return select_term(snapshot, AbstractSpinModel, component, kinds)
