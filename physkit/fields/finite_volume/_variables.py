"""The variables of a conservation law: the components of a state's fields, one array each."""

import math
from typing import TypeAlias, TypeVar

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import Rate, ShapeError, barrier_on_the_way_forward

from .._field import Field
from .._field_increment import FieldIncrement
from .._ghost_widths import ghost_widths
from ..states._field_group import AbstractFieldGroup
from ._riemann_solvers import Variables

FieldComponent: TypeAlias = Field | AbstractFieldGroup
OneKind = TypeVar("OneKind", bound=Field | AbstractFieldGroup)


def component_fields(component: object) -> dict[str, Field]:
    """The fields of a component by name; of a field, itself under an empty one.

    **Errors:** `ShapeError` for fields that are not cell averages.
    """
    if isinstance(component, Field):
        if component.location != component.grid.cell:
            raise ShapeError(
                f"finite volumes are cells' averages; this field sits at {component.location!r}"
            )
        return {"": component}
    if not isinstance(component, AbstractFieldGroup):
        raise ShapeError(
            f"a conservation law moves a Field or a component made of fields; got "
            f"{type(component).__name__}"
        )
    return component.cell_parts()


def unstack(field: Field, values: Array) -> tuple[Array, ...]:
    """The components of a field's values one by one."""
    # (components, points), whatever the shape of the components.
    flat = values.reshape(-1, *values.shape[len(field.components) :])
    return tuple(flat[k] for k in range(flat.shape[0])) if field.components else (values,)


def as_rates(component: FieldComponent, variables: Variables) -> Rate:
    """One array per variable as the rate of the component."""
    # Variables were listed field by field, component by component: they are taken off in that order.
    rates, rest = {}, list(variables)
    for name, field in component_fields(component).items():
        if not field.components:
            values = rest.pop(0)
        else:
            count = math.prod(field.components)
            values = jnp.stack([rest.pop(0) for _ in range(count)]).reshape(field.data.shape)
        rates[name] = FieldIncrement(values, field.location)
    return rates[""] if isinstance(component, Field) else rates


def compute_once(component: OneKind) -> OneKind:
    """`component`, whose values are computed before anything reads them.

    The compiler would compute the state of a stage, with all fluxes of the stage before, again in each of the
    many places that read it: programs are several times as large then, and slower.
    """
    fields = {"": component} if isinstance(component, Field) else component.parts()
    data = barrier_on_the_way_forward(tuple(field.data for field in fields.values()))
    fresh = {
        name: field.replace(data=x) for (name, field), x in zip(fields.items(), data, strict=True)
    }
    return fresh[""] if isinstance(component, Field) else component.replace(fresh)


def padded_variables(component: FieldComponent, width: int, axis: int) -> Variables:
    """The variables with `width` ghost cells on both sides of `axis`."""
    return tuple(
        x
        for field in component_fields(component).values()
        for x in unstack(field, field.padded(ghost_widths(axis, field.grid.dimension, width)))
    )


def variables_with_corners(component: FieldComponent, width: int) -> Variables:
    """The variables with `width` ghost cells on all sides."""
    return tuple(
        x
        for field in component_fields(component).values()
        for x in unstack(field, field.padded(width))
    )


def count_carried(component: FieldComponent) -> int:
    """How many of the last variables flow with the mass, the first of them."""
    if isinstance(component, Field):
        return 0
    fields = component_fields(component)
    return sum(math.prod(fields[n].components) for n in component.carried if n in fields)
