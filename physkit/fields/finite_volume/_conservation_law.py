"""The contract of a system of conservation laws, and its finite-volume rate."""

import abc
import math
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    DeclarationError,
    Rate,
    ShapeError,
    State,
    get_component,
)
from physkit.geometry import Grid

from .._field import Field
from .._field_increment import FieldIncrement
from .._ghost_widths import ghost_widths
from ..states._field_group import AbstractFieldGroup
from ._reconstruction import AbstractReconstruction, edges_to_faces
from ._riemann_solvers import AbstractRiemannSolver, Variables, unsupported_solver

FieldComponent: TypeAlias = Field | AbstractFieldGroup


class AbstractConservationLaw(AbstractTendency):
    """∂U/∂t + Σ_k ∂F_k(U)/∂x_k = 0 by finite volumes, for the component called `component`.

    The component is one field or several (`AbstractFieldGroup`). Its *variables* are the components of its
    fields one by one, each an array over the grid, in order: (ρ, m_x, m_y, E). A law is written in
    *primitive* variables – the conserved ones, unless `primitive` and `conserved` say otherwise – and
    `flux` and `wave_speeds` are all that it must know:

        class Burgers(AbstractConservationLaw):
            component: str | None = static(default=None)
            riemann: AbstractRiemannSolver = HLL()
            reconstruction: AbstractReconstruction = MUSCL()

            def flux(self, values, axis):
                (u,) = values
                return (u * u / 2,)

            def wave_speeds(self, values, axis):
                (u,) = values
                return u, u

    What leaves one cell enters the next: sums over a domain that repeats stay as they are, to rounding.
    """

    component: eqx.AbstractVar[str | None]
    riemann: eqx.AbstractVar[AbstractRiemannSolver]
    reconstruction: eqx.AbstractVar[AbstractReconstruction]

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        base = AbstractConservationLaw
        own = [n for n in ("primitive", "conserved") if getattr(cls, n) is not getattr(base, n)]
        if len(own) == 1:
            other = "conserved" if own == ["primitive"] else "primitive"
            raise DeclarationError(
                f"{cls.__name__} overrides {own[0]}, but not {other}, its inverse: write both, or neither"
            )

    # --- the law --------------------------------------------------------------------------------

    def primitive(self, conserved: Variables) -> Variables:
        """The variables that are reconstructed and that fluxes are written in."""
        return conserved

    def conserved(self, primitive: Variables) -> Variables:
        """The inverse of `primitive`."""
        return primitive

    @abc.abstractmethod
    def flux(self, values: Variables, axis: int) -> Variables:
        """The flux of every conserved variable along `axis`, from primitive variables."""

    @abc.abstractmethod
    def wave_speeds(
        self, values: Variables, axis: int
    ) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """The slowest and the fastest characteristic speed along `axis`."""

    def signal_speeds(
        self, left: Variables, right: Variables, axis: int
    ) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """Bounds of the speeds of the waves that two meeting states send out."""
        (a, b), (c, d) = self.wave_speeds(left, axis), self.wave_speeds(right, axis)
        return jnp.minimum(a, c), jnp.maximum(b, d)

    def check_component(self, component: FieldComponent) -> None:
        """**Errors:** `ShapeError` for a component that the law is not made for; here none is refused."""
        del component

    def is_admissible(self, values: Variables) -> Bool[Array, "..."] | None:
        """Where primitive variables are physical (a positive density); None for everywhere."""
        del values

    def contact_fluxes(
        self, left: Variables, right: Variables, slow: Array, fast: Array, axis: int
    ) -> tuple[Array, Variables, Variables]:
        """For `HLLC`: the speed of the contact, and the fluxes on both sides of it."""
        raise unsupported_solver(self, "HLLC", "contact_fluxes")

    def exact_state(self, left: Variables, right: Variables, axis: int) -> Variables:
        """For `ExactRiemann`: the primitive variables that two meeting states leave at the face."""
        raise unsupported_solver(self, "ExactRiemann", "exact_state")

    def metric(self, grid: Grid, axis: int) -> tuple[Array, Array] | None:
        """Areas of the faces `[n + 1]` and volumes of the cells `[n]` along `axis`, where they vary."""
        del grid, axis

    # --- what follows from it -------------------------------------------------------------------

    def rate(self, clock: Clock, state: State) -> Rate:
        del clock
        component = get_component(state, self.component)
        component_fields(component)  # raises for what is no component of cell averages
        self.check_component(component)
        rates = finite_volume_rate(self, component)
        return rates if self.component is None else {self.component: rates}

    def max_signal_rate(self, clock: Clock, state: State) -> Float[Array, ""]:
        """max Σ_k |λ_k| / h_k over all cells, 1 / time: dt times it is the Courant number."""
        del clock
        component = get_component(state, self.component)
        fields = list(component_fields(component).values())
        grid = fields[0].grid
        values = self.primitive(tuple(x for field in fields for x in unstack(field, field.data)))
        # Summed over the axes: an unsplit scheme takes the fluxes of all of them in one step.
        total = jnp.zeros((), values[0].dtype)
        for axis in range(grid.dimension):
            slow, fast = self.wave_speeds(values, axis)
            total = total + jnp.maximum(jnp.abs(slow), jnp.abs(fast)) / grid.spacing[axis]
        return grid.max(jnp.broadcast_to(total, grid.local_shape))


def finite_volume_rate(law: AbstractConservationLaw, component: FieldComponent) -> Rate:
    """−Σ_k ∂F_k/∂x_k of every field of `component`, in the form of its rates.

    Each axis is padded by itself, by as much as the reconstruction needs.
    """
    grid = next(iter(component_fields(component).values())).grid
    component = compute_once(component)
    # Axis by axis: ghost cells in the corners, which no flux needs, are never exchanged.
    total: list[Array] | None = None
    for axis in range(grid.dimension):
        left, right = reconstruct_faces(law, component, axis)
        # Computed once, not again in each of the two cells that it flows between.
        fluxes = jax.lax.optimization_barrier(law.riemann.flux(law, left, right, axis))
        parts = [difference_over_cells(law, f, grid, axis) for f in fluxes]
        total = parts if total is None else [a + b for a, b in zip(total, parts, strict=True)]
    assert total is not None
    return as_rates(component, tuple(-x for x in total))


def compute_once(component: FieldComponent) -> FieldComponent:
    """`component`, whose values are computed before anything reads them.

    The compiler would compute the state of a stage, with all fluxes of the stage before, again in each of the
    many places that read it: programs are several times as large then, and slower.
    """
    fields = component_fields(component)
    data = jax.lax.optimization_barrier(tuple(field.data for field in fields.values()))
    fresh = {
        name: field.replace(data=x) for (name, field), x in zip(fields.items(), data, strict=True)
    }
    return fresh[""] if isinstance(component, Field) else component.replace(fresh)


def reconstruct_faces(
    law: AbstractConservationLaw, component: FieldComponent, axis: int
) -> tuple[Variables, Variables]:
    """Primitive variables below and above every face across `axis`."""
    fields = component_fields(component)
    scheme = law.reconstruction
    padded = tuple(x for field in fields.values() for x in _pad_along(field, scheme.width, axis))
    if scheme.uses_primitive:
        pairs = [scheme.faces(x, axis) for x in law.primitive(padded)]
        return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    # Conserved variables are reconstructed; only edges are made primitive.
    stencils = [scheme.stencil(x, axis) for x in padded]
    # The range of every variable over the domain, without its ghosts.
    scales = [
        _range_over_domain(field.grid, x)
        for field in fields.values()
        for x in unstack(field, field.data)
    ]
    edges = [scheme.edges_of_scale(s, *cells) for s, cells in zip(scales, stencils, strict=True)]
    # A stencil of 2·width − 1 cells: its middle is the cell itself.
    middle = law.primitive(tuple(cells[scheme.width - 1] for cells in stencils))
    low, high = (_edge_or_cell(law, tuple(e[side] for e in edges), middle) for side in (0, 1))
    pairs = [edges_to_faces(a, b, axis) for a, b in zip(low, high, strict=True)]
    return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)


def _range_over_domain(grid: Grid, values: Array) -> Array:
    values = jax.lax.stop_gradient(values)
    return grid.max(values) + grid.max(-values)


def _edge_or_cell(
    law: AbstractConservationLaw, conserved: Variables, middle: Variables
) -> Variables:
    """Primitive variables at an edge; those of the cell where the edge's are not admissible."""
    # A polynomial of high order may overshoot to a negative density or pressure; the average does not, so
    # that a cell falls back to first order and positivity is kept.
    values = law.primitive(conserved)
    admissible = law.is_admissible(values)
    if admissible is None:
        return values
    return tuple(jnp.where(admissible, x, cell) for x, cell in zip(values, middle, strict=True))


def difference_over_cells(
    law: AbstractConservationLaw, flux: Array, grid: Grid, axis: int
) -> Array:
    """∂F/∂x from values on faces, of which there is one more than cells."""
    metric = law.metric(grid, axis)
    n = flux.shape[axis]
    if metric is None:
        volumes = grid.spacing[axis]
    else:
        shape = [-1 if k == axis else 1 for k in range(grid.dimension)]
        areas, volumes = (x.reshape(shape) for x in metric)
        flux = flux * areas
    below, above = (jax.lax.slice_in_dim(flux, j, n - 1 + j, axis=axis) for j in (0, 1))
    return (above - below) / volumes


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
    return component.parts()


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


def _pad_along(field: Field, width: int, axis: int) -> tuple[Array, ...]:
    return unstack(field, field.padded(ghost_widths(axis, field.grid.dimension, width)))
