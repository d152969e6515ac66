"""What is recorded of fields."""

from typing import Any

from jaxtyping import Array

from physkit.core import ComponentError, get, static
from physkit.fields import Field

from ._observer import AbstractQuantity
from ._snapshot import Snapshot


class Values(AbstractQuantity):
    """The numbers of a field.

    **Arguments:**

    - `of`: the field's name, where the state has several components.

    **Returns:** `[*components, *points]`.

    **Errors:** `ComponentError` when the component is no field.
    """

    of: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Array:
        return the_field(snapshot, self.of).data


class Integral(AbstractQuantity):
    """∫ u dV of a field, per component: mass from a density, momentum from a momentum density.

    **Arguments:**

    - `of`: the field's name, where the state has several components.

    **Returns:** `[*components]`.
    """

    of: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Array:
        return the_field(snapshot, self.of).integral()


class RootMeanSquare(AbstractQuantity):
    """√⟨|u|²⟩ of a field, over the volume and all components.

    **Arguments:**

    - `of`: the field's name, where the state has several components.

    **Returns:** a scalar.
    """

    of: str | None = static(default=None)

    def __call__(self, snapshot: Snapshot) -> Array:
        return the_field(snapshot, self.of).norm()


def the_field(snapshot: Snapshot, of: str | None) -> Field:
    """The field called `of`.

    **Errors:** `ComponentError` when it is something else.
    """
    component: Any = get(snapshot.state, of)
    if not isinstance(component, Field):
        raise ComponentError(
            f"this quantity is about a field; {'the state' if of is None else repr(of)} is "
            f"{type(component).__name__}"
        )
    return component
