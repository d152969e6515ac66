"""Quantities of fields: values, integrals and norms."""

from typing import Any, ClassVar

from jaxtyping import Array, Float

from physkit.core import ComponentError, ObserverError, StorageKind, get_component, static
from physkit.fields import Field
from physkit.fields.equations import AbstractGradientFlow, QuasiGeostrophic

from .._observer import AbstractQuantity
from .._snapshot import Snapshot


class FieldValues(AbstractQuantity):
    """The numbers of a field.

    **Arguments:**

    - `component`: the field's name, where the state has several components.

    **Returns:** `[*components, *points]`.

    **Errors:** `ComponentError` when the component is no field.
    """

    component: str | None = static(default=None)
    storage_kind: ClassVar[StorageKind] = StorageKind.FIELD

    def __call__(self, snapshot: Snapshot) -> Array:
        return require_field(snapshot, self.component).data


class Integral(AbstractQuantity):
    """∫ u dV of a field, per component: mass from a density, momentum from a momentum density.

    **Arguments:**

    - `component`: the field's name, where the state has several components.

    **Returns:** `[*components]`.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Array:
        return require_field(snapshot, self.component).integral()


class RootMeanSquare(AbstractQuantity):
    """√⟨|u|²⟩ of a field, over the volume and all components.

    **Arguments:**

    - `component`: the field's name, where the state has several components.

    **Returns:** a scalar.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Array:
        return require_field(snapshot, self.component).norm()


class FreeEnergy(AbstractQuantity):
    """F[φ] of a field that goes down a free energy (`AllenCahn`, `CahnHilliard`, `SwiftHohenberg`, …).

    The energy is that of the running equation, with the parameters that it has there. It never rises, but
    for noise and the error of the time step.

    **Arguments:**

    - `component`: the field's name, where the state has several components.

    **Returns:** a scalar, energy.

    **Errors:** `ObserverError` unless the integrator holds one such equation of the field.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        law = _running(
            AbstractGradientFlow, "FreeEnergy", "CahnHilliard()", snapshot, self.component
        )
        return law.free_energy(require_field(snapshot, self.component))


class EddyEnergy(AbstractQuantity):
    """Kinetic and available potential energy of what flows beside the mean, in layers (`QuasiGeostrophic`).

        ½ Σᵢ ∫ Hᵢ |∇ψᵢ|² + sᵢ (ψᵢ − ψᵢ₊₁)² dA

    **Arguments:**

    - `component`: the field's name, where the state has several components.

    **Returns:** a scalar, depth · length⁴ / time².

    **Errors:** `ObserverError` unless the integrator holds one such equation of the field.
    """

    component: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        law = _running(
            QuasiGeostrophic, "EddyEnergy", "QuasiGeostrophic()", snapshot, self.component
        )
        return law.energy(require_field(snapshot, self.component))


def _running(
    kind: type, quantity: str, example: str, snapshot: Snapshot, component: str | None
) -> Any:
    """The one running equation of a kind that moves the field called `component`."""
    terms = [term for term, _ in snapshot.terms()]
    found = [t for t in terms if isinstance(t, kind) and t.component == component]
    if len(found) != 1:
        raise ObserverError(
            f"{quantity} is of one equation such as {example}; the integrator holds "
            f"{[type(t).__name__ for t in terms]}"
        )
    return found[0]


def require_field(snapshot: Snapshot, component: str | None) -> Field:
    """The field called `component`.

    **Errors:** `ComponentError` when it is something else.
    """
    field = get_component(snapshot.state, component)
    if not isinstance(field, Field):
        raise ComponentError(
            f"this quantity is about a field; {'the state' if component is None else repr(component)} is "
            f"{type(field).__name__}"
        )
    return field
