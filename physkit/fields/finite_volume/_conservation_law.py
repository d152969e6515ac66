"""The contract of a system of conservation laws, and its finite-volume rate."""

import abc
from collections.abc import Callable
from functools import partial
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
    State,
    get_component,
    ratio,
    recomputed,
    safe_maximum,
    safe_minimum,
)
from physkit.geometry import Grid
from physkit.native import (
    NotTranslatableError,
    kernels_are_used,
    map_stencil,
    native_or_xla,
)

from ..stencils._computed_once import computed_once
from ..stencils._slabs import in_slabs
from ._ausm import AdvectionParts
from ._faces import (
    add_fluxes,
    cells_around_faces,
    fluxes_by_kernels,
    fluxes_by_xla,
    fluxes_in_one_pass,
    limit_fluxes,
    ranges_over_domain,
    waves_are_local,
)
from ._reconstruction import AbstractReconstruction
from ._riemann_solvers import AbstractRiemannSolver, Variables, unsupported_solver
from ._variables import (
    FieldComponent,
    as_rates,
    component_fields,
    compute_once,
    count_carried,
    padded_variables,
    unstack,
    variables_with_corners,
)

# Law, padded conserved variables, how many are carried, their ranges, axis, limits → fluxes through faces.
FluxesOfWaves: TypeAlias = Callable[..., Variables]


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

    Parts of a component that are `carried` – amounts of a scalar per volume – are no variables of the law: they
    flow with the mass, its first variable.

    Written with operations on the numbers of each cell, all of it is one pass of native code on CPUs, and one
    kernel for each axis on NVIDIA's GPUs. A law or a solver that looks at all cells, at the fastest wave say,
    is computed as a whole, more slowly; over devices it sees the cells of each by themselves.

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
        return safe_minimum(a, c), safe_maximum(b, d)

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

    def roe_dissipation(self, left: Variables, right: Variables, axis: int) -> Variables:
        """For `Roe`: |A| (U_R − U_L), the waves between two meeting states times their speeds."""
        raise unsupported_solver(self, "Roe", "roe_dissipation")

    def advection_parts(self, values: Variables, axis: int) -> AdvectionParts:
        """For `AUSMPlus`: the flux along `axis` as what mass carries, and the pressure."""
        raise unsupported_solver(self, "AUSMPlus", "advection_parts")

    def alfven_flux(self, left: Variables, right: Variables, axis: int) -> Variables:
        """For `HLLD`: the flux between two meeting states of a gas that conducts."""
        raise unsupported_solver(self, "HLLD", "alfven_flux")

    @property
    def limits_fluxes(self) -> bool:
        """Whether `limit_fluxes` is asked."""
        return type(self).limit_fluxes is not AbstractConservationLaw.limit_fluxes

    @property
    def has_diffusion(self) -> bool:
        """Whether there are `diffusive_fluxes`."""
        return False

    def diffusive_fluxes(self, grid: Grid, padded: Variables) -> tuple[Variables, ...]:
        """Fluxes that gradients drive, added to those of the waves: per axis, on n + 1 faces.

        `padded`: conserved variables with one ghost cell all around. There may be fewer rows than the grid has.
        """
        raise NotImplementedError(f"{type(self).__name__} has no diffusive fluxes")

    def diffusivity(self, values: Variables) -> Float[Array, "..."] | None:
        """The largest coefficient of those fluxes, length² / time, from primitive variables."""
        del values

    def limit_fluxes(
        self,
        grid: Grid,
        below: Variables,
        above: Variables,
        fluxes: Variables,
        axis: int,
        dt: Array | None,
    ) -> Variables:
        """Fluxes through the faces across `axis`, as far as a step of length `dt` may take them.

        `below`, `above`: conserved variables of the cells on both sides.
        """
        del grid, below, above, axis, dt
        return fluxes

    def metric(self, grid: Grid, axis: int) -> tuple[Array, Array] | None:
        """Areas of the faces `[n + 1]` and volumes of the cells `[n]` along `axis`, where they vary."""
        del grid, axis

    # --- what follows from it -------------------------------------------------------------------

    def rate(self, clock: Clock, state: State) -> Rate:
        component = get_component(state, self.component)
        component_fields(component)  # raises for what is no component of cell averages
        self.check_component(component)
        rates = finite_volume_rate(self, component, clock.dt)
        return rates if self.component is None else {self.component: rates}

    def max_signal_rate(self, clock: Clock, state: State) -> Float[Array, ""]:
        """max Σ_k (|λ_k| / h_k + 2D / h_k²) over all cells, 1 / time: dt times it is the Courant number."""
        del clock
        component = get_component(state, self.component)
        fields = list(component_fields(component).values())
        grid = fields[0].grid
        conserved = tuple(x for field in fields for x in unstack(field, field.data))
        values = self.primitive(conserved[: len(conserved) - count_carried(component)])
        # Summed over the axes: an unsplit scheme takes the fluxes of all of them in one step.
        total = jnp.zeros((), values[0].dtype)
        for axis in range(grid.dimension):
            slow, fast = self.wave_speeds(values, axis)
            total = total + safe_maximum(jnp.abs(slow), jnp.abs(fast)) / grid.spacing[axis]
        diffusivity = self.diffusivity(values)
        if diffusivity is not None:
            # A diffusive step is stable up to 1 of this, with every method that has second order or more.
            total = total + diffusivity * (2 * jnp.sum(ratio(1.0, grid.spacing) ** 2))
        return grid.max(jnp.broadcast_to(total, grid.local_shape))


def finite_volume_rate(
    law: AbstractConservationLaw, component: FieldComponent, dt: Array | None = None
) -> Rate:
    """−Σ_k ∂F_k/∂x_k of every field of `component`, in the form of its rates.

    Each axis is padded by itself, by as much as the reconstruction needs. What flows with the mass takes its
    flux: as much of it as there is in a unit of mass upstream. `dt`: length of the step, for laws that limit
    their fluxes.
    """
    # Traced, also outside of any program: native code reads the law's numbers, and is compiled once for all.
    return recomputed(_rate)(law, component, dt)


def _rate(law: AbstractConservationLaw, component: FieldComponent, dt: Array | None) -> Rate:
    grid = next(iter(component_fields(component).values())).grid
    component = compute_once(component)
    carried, width = count_carried(component), law.reconstruction.width
    ranges = ranges_over_domain(law, component)
    # Axis by axis: ghost cells in the corners, which no flux of waves needs, are never exchanged.
    padded = [padded_variables(component, width, axis) for axis in range(grid.dimension)]
    overlaps = [2 * width] + [0] * (grid.dimension - 1)
    if law.has_diffusion:
        padded.append(variables_with_corners(component, 1))
        overlaps.append(2)

    # Waves are limited where they are computed, unless others are added to them.
    limits = (grid, dt) if law.limits_fluxes else None
    waves_limits = None if law.has_diffusion else limits

    def rates(fluxes_of_waves: FluxesOfWaves, *padded: Variables) -> Variables:
        """−Σ_k ∂F_k/∂x_k of as many rows as there are."""
        diffusive = law.diffusive_fluxes(grid, padded[-1]) if law.has_diffusion else None
        total: list[Array] = []
        for axis in range(grid.dimension):
            fluxes = fluxes_of_waves(law, padded[axis], carried, ranges, axis, waves_limits)
            if diffusive is not None:
                fluxes = add_fluxes(fluxes, diffusive[axis])
                if limits is not None:
                    cells = cells_around_faces(padded[axis], width, axis)
                    fluxes = limit_fluxes(law, fluxes, cells, axis, limits)
            # Not again in each of the two cells that they flow between.
            fluxes = computed_once(fluxes)
            parts = [difference_over_cells(law, f, grid, axis) for f in fluxes]
            total = [a + b for a, b in zip(total, parts, strict=True)] if total else parts
        return tuple(-x for x in total)

    if not waves_are_local(law, grid.dimension, padded[0], carried, ranges, waves_limits):
        return as_rates(component, rates(fluxes_by_xla, *padded))
    # Rows differ where areas do.
    is_uniform = law.metric(grid, 0) is None

    def by_xla(*padded: Variables) -> Variables:
        function = partial(rates, fluxes_by_xla)
        return in_slabs(function, padded, overlaps) if is_uniform else function(*padded)

    def by_native_code(*padded: Variables) -> Variables:
        function = partial(rates, partial(fluxes_in_one_pass, map_stencil))
        try:
            # Waves alone are one pass over all cells; diffusion is many, which slabs keep in the cache.
            if not (law.has_diffusion and is_uniform):
                return function(*padded)
            return in_slabs(function, padded, overlaps)
        except NotTranslatableError:
            return by_xla(*padded)

    # Kernels are chosen face by face: sums for derivatives of what is around them share reductions.
    elsewhere = partial(rates, fluxes_by_kernels) if kernels_are_used() else by_xla
    return as_rates(component, native_or_xla(by_native_code, elsewhere, *padded))


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
    return ratio(above - below, volumes)
