"""Quantities of fields: values, integrals and norms."""

from dataclasses import KW_ONLY
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    ComponentError,
    PyTree,
    State,
    StorageKind,
    get_component,
    replace_fields,
    static,
)
from physkit.fields import AbstractFieldGroup, Field
from physkit.fields.equations import AbstractGradientFlow, QuasiGeostrophic
from physkit.fields.operators import average
from physkit.geometry import AXES

from .._observer import AbstractQuantity
from .._selection import select_term
from .._snapshot import Snapshot


class FieldValues(AbstractQuantity):
    """The numbers of a field, or of a part of a component that is made of several.

        Every(10, u=FieldValues("flow", part="velocity"), p=FieldValues("flow", part="pressure"))

    **Arguments:**

    - `component`: the field's name, where the state has several components.
    - `part`: of a `Gas`, a `FlowState`, an `ElectromagneticField` and their like: the name of one of its fields
      (`"density"`, `"velocity_x"`, `"Ez"`), as it is, on the faces or edges where it sits; or of several
      (`"velocity"`, `"electric"`, `"stress"`, `"vorticity"`), averaged to the cells and put together.

    **Returns:** `[*components, *points]`. Files have the places of the points: ParaView shows velocity in cells
    and `velocity_x` on faces where they are.

    **Errors:** `ComponentError` when the component is no field, or has no such part.
    """

    component: str | None = static(default=None)
    _: KW_ONLY
    part: str | None = static(default=None)
    storage_kind: ClassVar[StorageKind] = StorageKind.FIELD

    def __call__(self, snapshot: Snapshot) -> Array:
        if self.part is None:
            return require_field(snapshot, self.component).data
        found = get_component(snapshot.state, self.component)
        return field_of_part(found.at_time(snapshot.clock.t), self.part).data

    def stored_field(self, state: State) -> PyTree:
        found = get_component(state, self.component)
        if self.part is None:
            return found
        shape = eqx.filter_eval_shape(field_of_part, found, self.part)
        return replace_fields(shape, {"grid": found.grid})


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
        law = select_term(
            snapshot, AbstractGradientFlow, self.component, "one equation such as CahnHilliard()"
        )
        return law.free_energy(require_field(snapshot, law.component))


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
        law = select_term(snapshot, QuasiGeostrophic, self.component, "one QuasiGeostrophic")
        return law.energy(require_field(snapshot, law.component))


def field_of_part(component: AbstractFieldGroup, part: str) -> Field:
    """A part of a component as one field: where it sits if it is one field, in the cells if it is several.

    **Errors:** `ComponentError` where there is no such part.
    """
    if not isinstance(component, AbstractFieldGroup):
        raise ComponentError(
            f"part={part!r} is of a component of several fields; this is a {type(component).__name__}"
        )
    parts, grid = component.parts(), component.grid
    found = getattr(component, part, None)
    if found is None:  # velocity_x, velocity_y, … by what they have in common
        found = tuple(parts[name] for axis in AXES if (name := f"{part}_{axis}") in parts)
    if callable(found) and not isinstance(found, Field):
        found = found()
    if isinstance(found, Field):
        return found
    if isinstance(found, jax.Array) and found.shape[-grid.dimension :] == grid.local_shape:
        of_cells = next(f for f in parts.values() if f.location == grid.cell and not f.components)
        return of_cells.with_values(found)
    fields = tuple(found.values()) if isinstance(found, dict) else found
    if not isinstance(fields, tuple) or not fields or not all(isinstance(f, Field) for f in fields):
        raise ComponentError(
            f"{type(component).__name__} has no field {part!r}; its fields are {list(parts)}"
        )
    if len(fields) == 1:
        return fields[0]
    in_cells = [_in_cells(field) for field in fields]
    is_vector = len(fields) == grid.dimension
    return in_cells[0].with_values(jnp.stack([f.data for f in in_cells]), vector=is_vector)


def _in_cells(field: Field) -> Field:
    for k, is_staggered in enumerate(field.location.staggered):
        field = average(field, k) if is_staggered else field
    return field


def require_field(snapshot: Snapshot, component: str | None) -> Field:
    """The field called `component`.

    **Errors:** `ComponentError` when it is something else.
    """
    field = get_component(snapshot.state, component)
    if isinstance(field, AbstractFieldGroup):
        named = "" if component is None else f"{component!r}, "
        raise ComponentError(
            f"{type(field).__name__} is made of several fields, {list(field.parts())}: "
            f"FieldValues({named}part=…) records one of them, or several in cells (part='velocity')"
        )
    if not isinstance(field, Field):
        raise ComponentError(
            f"this quantity is about a field; {'the state' if component is None else repr(component)} is "
            f"{type(field).__name__}"
        )
    return field
