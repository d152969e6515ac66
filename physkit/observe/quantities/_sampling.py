"""Quantities of sampling: collective variables, biases, free energies, energies at other parameters."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import ObserverError, PyTree, SelectionError, static
from physkit.integrators import AbstractIntegrator, BasinHopping, Metadynamics
from physkit.particles.forces import AbstractBias

from .._observer import AbstractQuantity
from .._snapshot import Snapshot
from ._energies import PotentialEnergy


class CollectiveVariables(AbstractQuantity):
    """The values of the collective variables of all running biases, in the order of the forces.

    **Returns:** a scalar where there is one variable, else `[variables]`.

    **Errors:** `ObserverError` where no `HarmonicBias`, `GridBias` or other bias runs.
    """

    def __call__(self, snapshot: Snapshot) -> Float[Array, "..."]:
        values = [x for bias in _biases(snapshot) for x in bias.variable_values(snapshot.state)]
        return values[0] if len(values) == 1 else jnp.stack(values)


class BiasEnergy(AbstractQuantity):
    """The energy of all running biases: what reweighting takes away.

    **Returns:** a scalar, energy.

    **Errors:** `ObserverError` where no bias runs.
    """

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        energies = [b.energy(snapshot.clock, snapshot.state) for b in _biases(snapshot)]
        return sum(energies[1:], energies[0])


class MetadynamicsFreeEnergy(AbstractQuantity):
    """The free energy at the nodes of the bias of the running `Metadynamics`, 0 where it is lowest.

        F = −γ/(γ − 1) V

    **Returns:** `[nodes]` or `[nodes nodes]`, energy.

    **Errors:** `ObserverError` where another integrator runs.
    """

    def __call__(self, snapshot: Snapshot) -> Float[Array, "..."]:
        integrator = _require(snapshot, Metadynamics)
        return integrator.free_energy(snapshot.aux)


class LowestEnergy(AbstractQuantity):
    """The lowest energy that the running `BasinHopping` has found, energy.

    **Errors:** `ObserverError` where another integrator runs.
    """

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        _require(snapshot, BasinHopping)
        return snapshot.aux.lowest_energy


class LowestPositions(AbstractQuantity):
    """The positions of the lowest minimum that the running `BasinHopping` has found, `[n d]`, length.

    **Arguments:** `component`: name of the particle component; None where the state is one component.

    **Errors:** `ObserverError` where another integrator runs.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, "n d"]:
        _require(snapshot, BasinHopping)
        state = snapshot.aux.lowest_state
        return (state if self.component is None else state[self.component]).position


class EnergyDerivative(AbstractQuantity):
    """The derivative of the potential energy by numbers of the running forces, such as a λ.

        ∂U/∂λ at fixed positions

        Every(10, slope=EnergyDerivative(lambda m: find(m, SoftCoreLennardJones).coupling))

    **Arguments:** `where`: a function of the integrator that points at numbers; `find` in it serves a sweep,
    too. One that returns a tuple makes a tuple of derivatives.

    **Returns:** in the shape of the number.

    **Errors:** `SelectionError` for what is no number of the running integrator.
    """

    where: Callable = static()

    def __call__(self, snapshot: Snapshot) -> PyTree:
        numbers = _select(self.where, snapshot.integrator)
        return jax.grad(lambda x: _energy_with(self.where, snapshot, x))(numbers)


class EnergiesAt(AbstractQuantity):
    """The potential energy of this configuration at other values of numbers of the running forces.

        Every(10, u=EnergiesAt(lambda m: find(m, HarmonicBias).center, centers))

    What `free_energies` takes: all simulations of a sweep over the same values record the same row.

    **Arguments:**

    - `where`: a function of the integrator that points at a number, or at a tuple of several.
    - `values`: `[states, …]`, or a tuple of as many.

    **Returns:** `[states]`, energy.

    **Errors:** `SelectionError` for what is no number of the running integrator.
    """

    where: Callable = static()
    values: PyTree

    def __init__(self, where: Callable, values: PyTree):
        self.where = where
        is_tuple = isinstance(values, tuple)
        self.values = tuple(map(jnp.asarray, values)) if is_tuple else jnp.asarray(values)

    def __call__(self, snapshot: Snapshot) -> Float[Array, " s"]:
        numbers = _select(self.where, snapshot.integrator)
        values = jax.tree.map(lambda v, x: v.astype(x.dtype), self.values, numbers)
        # One after the other: all at a time would hold as many pairs of particles.
        return jax.lax.map(lambda x: _energy_with(self.where, snapshot, x), values)


def _select(where: Callable, integrator: AbstractIntegrator) -> PyTree:
    numbers = where(integrator)
    if not all(eqx.is_inexact_array(x) for x in jax.tree.leaves(numbers)):
        raise SelectionError(
            f"where selects {numbers!r:.80}; it must point at floating-point numbers of the integrator"
        )
    return numbers


def _energy_with(where: Callable, snapshot: Snapshot, numbers: PyTree) -> Float[Array, ""]:
    integrator = eqx.tree_at(where, snapshot.integrator, numbers)
    return PotentialEnergy()(eqx.tree_at(lambda s: s.integrator, snapshot, integrator))


def _biases(snapshot: Snapshot) -> list[AbstractBias]:
    found = [term for term, _ in snapshot.terms() if isinstance(term, AbstractBias)]
    if not found:
        raise ObserverError(
            "no bias of a collective variable is among the running forces: add HarmonicBias(…) or GridBias(…)"
        )
    return found


def _require(snapshot: Snapshot, kind: type) -> AbstractIntegrator:
    if not isinstance(snapshot.integrator, kind):
        raise ObserverError(
            f"this is a quantity of {kind.__name__}; the integrator is {type(snapshot.integrator).__name__}"
        )
    return snapshot.integrator


class Acceptance(AbstractQuantity):
    """The share of the last step's trials that were accepted, 0 … 1; its mean is what to tune.

        Average(1, acceptance=Acceptance())

    **Errors:** `ObserverError` unless the integrator is `HardSphereMonteCarlo` or `HybridMonteCarlo`.
    """

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        share = getattr(snapshot.aux, "acceptance", None)
        if not isinstance(share, jax.Array):
            raise ObserverError(
                "the acceptance is of HardSphereMonteCarlo and HybridMonteCarlo; "
                f"{type(snapshot.integrator).__name__} runs"
            )
        return share
