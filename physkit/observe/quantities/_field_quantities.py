"""Quantities of fields: values, integrals and norms."""

from typing import ClassVar

from jaxtyping import Array, Float

from physkit.core import ComponentError, ObserverError, StorageKind, get_component, static
from physkit.fields import Field
from physkit.fields.equations import AbstractGradientFlow

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
        field = require_field(snapshot, self.component)
        terms = [term for term, _ in snapshot.terms()]
        flows = [
            t
            for t in terms
            if isinstance(t, AbstractGradientFlow) and t.component == self.component
        ]
        if len(flows) != 1:
            raise ObserverError(
                "FreeEnergy is of one equation with a free energy, e.g. CahnHilliard(); the integrator "
                f"holds {[type(t).__name__ for t in terms]}"
            )
        return flows[0].free_energy(field)


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
