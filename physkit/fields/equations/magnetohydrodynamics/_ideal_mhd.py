"""Ideal magnetohydrodynamics with constrained transport."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physkit.core import (
    Clock,
    PyTree,
    Rate,
    ShapeError,
    State,
    cast_floats,
    get_component,
    kept_for_derivative,
    param,
    ratio,
    recomputed,
    safe_maximum,
    safe_minimum,
    safe_sqrt,
    static,
)
from physkit.geometry import AXES
from physkit.native import (
    MapStencil,
    NotTranslatableError,
    kernels_are_used,
    map_on_gpus,
    map_stencil,
    native_or_xla,
)

from ..._field import Field
from ..._field_increment import FieldIncrement
from ..._ghost_widths import ghost_widths
from ...finite_volume import (
    HLLD,
    MUSCL,
    AbstractConservationLaw,
    AbstractReconstruction,
    AbstractRiemannSolver,
    Variables,
)
from ...finite_volume._conservation_law import difference_over_cells
from ...finite_volume._faces import (
    ranges_over_domain,
    reconstruct_faces,
    sides_of_faces,
    waves_are_local,
    with_carried,
)
from ...finite_volume._hlld import MeetingSide, hlld_flux
from ...finite_volume._variables import (
    FieldComponent,
    as_rates,
    compute_once,
    count_carried,
    padded_variables,
    unstack,
)
from ...operators import difference
from ...states._gas import require_heat_ratio, require_same_gamma
from ...states._magnetized_gas import MagnetizedGas, place_of_field
from ...stencils._computed_once import computed_once
from ...stencils._map_faces import map_faces
from .._requirements import require_averages
from ._constrained_transport import (
    edge_field,
    electric_fields,
    face_electric_field,
    flow_direction,
    odd_at_mirrors,
)


class IdealMHD(AbstractConservationLaw):
    """Flow of an ideal gas that conducts perfectly, by finite volumes, for a `MagnetizedGas`.

        ∂ρ/∂t + ∇·(ρu) = 0
        ∂(ρu)/∂t + ∇·(ρuu − BB + p + ½B²) = 0
        ∂E/∂t + ∇·((E + p + ½B²)u − B(u·B)) = 0
        ∂B/∂t = ∇×(u×B),   ∇·B = 0

    On a line, in the plane or in space, always with three components of velocity and field. B on the faces is
    moved by electric fields on the edges: ∇·B stays what it was, to rounding. Mass, momentum, energy and what
    flows along (`scalars`) are kept to rounding in boxes that repeat.

    **Arguments:**

    - `gamma`: ratio of specific heats, > 1.
    - `riemann`: `HLLD()`, `HLL()`, `Rusanov()`.
    - `reconstruction`: `MUSCL(limiter)`, `WENO5()`, `PiecewiseConstant()`.
    - `component`: the gas's name, where the state has several components.

    **Errors:** `ParameterError` for γ ≤ 1, another γ than the gas's, a field with a divergence, and `AWENO5`.

    **Good values:** `SSPRK2` for MUSCL, `SSPRK3` for WENO5; dt < 0.4 / Σ_k (|u_k| + c_f)/h_k (`CFLSubsteps`).

    **Notes:** second order in more than one dimension, with WENO5, too (with smaller errors). Where p ≪ ½B² the
    pressure is a small difference; the fault `POSITIVITY` and `PositivityGuard` say so where it is lost.

    **Reference:** Gardiner & Stone, J. Comput. Phys. 205, 509 (2005), 227, 4123 (2008); Miyoshi & Kusano, J.
    Comput. Phys. 208, 315 (2005).
    """

    gamma: Float[Array, ""] = param()
    riemann: AbstractRiemannSolver = HLLD()
    reconstruction: AbstractReconstruction = MUSCL()
    component: str | None = static(default=None)

    def __check_init__(self):
        require_heat_ratio(self.gamma)
        require_averages(self.reconstruction, "IdealMHD")

    def check_component(self, component: FieldComponent) -> None:
        if not isinstance(component, MagnetizedGas):
            raise ShapeError(
                "ideal magnetohydrodynamics moves a MagnetizedGas, e.g. MagnetizedGas.from_primitive(…); "
                f"got {type(component).__name__}"
            )

    def check_state(self, state: State) -> None:
        gas = get_component(state, self.component)
        self.check_component(gas)
        require_same_gamma(gas.gamma, self.gamma, "IdealMHD")
        gas.require_no_divergence()

    # --- the law: (ρ, u, v, w, p, B_x, B_y, B_z) ------------------------------------------------

    def primitive(self, conserved: Variables) -> Variables:
        density, *momentum, energy, bx, by, bz = conserved
        velocity = [ratio(m, density) for m in momentum]
        kinetic = sum(m * u for m, u in zip(momentum, velocity, strict=True))
        pressure = (self.gamma - 1) * (energy - 0.5 * (kinetic + (bx * bx + by * by + bz * bz)))
        return density, *velocity, pressure, bx, by, bz

    def conserved(self, primitive: Variables) -> Variables:
        density, *velocity, pressure, bx, by, bz = primitive
        kinetic = density * sum(u * u for u in velocity)
        magnetic = bx * bx + by * by + bz * bz
        energy = pressure / (self.gamma - 1) + 0.5 * (kinetic + magnetic)
        return density, *(density * u for u in velocity), energy, bx, by, bz

    def flux(self, values: Variables, axis: int) -> Variables:
        density, *velocity, pressure, bx, by, bz = values
        magnetic = [bx, by, bz]
        u, b = velocity[axis], magnetic[axis]
        total = pressure + 0.5 * (bx * bx + by * by + bz * bz)
        mass = density * u
        momentum = [mass * v - b * c for v, c in zip(velocity, magnetic, strict=True)]
        momentum[axis] = momentum[axis] + total
        energy = self.conserved(values)[4]
        along = sum(v * c for v, c in zip(velocity, magnetic, strict=True))
        field = [u * c - v * b for v, c in zip(velocity, magnetic, strict=True)]
        # Nothing carries the normal component: 0, not the rounding of a difference.
        field[axis] = jnp.zeros_like(u)
        return mass, *momentum, (energy + total) * u - b * along, *field

    def wave_speeds(
        self, values: Variables, axis: int
    ) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        u, c = values[1 + axis], self.fast_speed(values, axis)
        return u - c, u + c

    def fast_speed(self, values: Variables, axis: int) -> Float[Array, "..."]:
        """The speed of fast magnetosonic waves along an axis."""
        density, pressure, *field = values[0], *values[4:]
        sound = ratio(self.gamma * pressure, density)
        squares = [ratio(b * b, density) for b in field]
        normal = squares.pop(axis)
        across = squares[0] + squares[1]
        # ((a² + b²)² − 4a²b_n²) as a sum of squares, which cannot cancel.
        difference = sound - (normal + across)
        root = safe_sqrt(difference * difference + 4 * sound * across)
        return jnp.sqrt(0.5 * (sound + (normal + across) + root))

    def is_admissible(self, values: Variables) -> Bool[Array, "..."]:
        return (values[0] > 0) & (values[4] > 0)

    def alfven_flux(self, left: Variables, right: Variables, axis: int) -> Variables:
        u, v = left[1 + axis], right[1 + axis]
        # Miyoshi & Kusano, eq. 67.
        fastest = safe_maximum(self.fast_speed(left, axis), self.fast_speed(right, axis))
        speeds = safe_minimum(u, v) - fastest, safe_maximum(u, v) + fastest
        sides = (
            MeetingSide(side, self.conserved(side), self.flux(side, axis), speed)
            for side, speed in zip((left, right), speeds, strict=True)
        )
        return hlld_flux(*sides, axis)

    # --- its rate -------------------------------------------------------------------------------

    def rate(self, clock: Clock, state: State) -> Rate:
        del clock
        gas = get_component(state, self.component)
        self.check_component(gas)
        rates = recomputed(IdealMHD._rates)(self, gas)
        return rates if self.component is None else {self.component: rates}

    def _rates(self, gas: MagnetizedGas) -> Rate:
        gas = compute_once(gas)
        grid = gas.grid
        conserved = tuple(x for p in gas.cell_parts().values() for x in unstack(p, p.data))
        cells = self.primitive(conserved[:8])
        if waves_are_local(self, 1, conserved, count_carried(gas), ranges_over_domain(self, gas)):
            native, cuda = (
                partial(self._fluxes_in_one_pass, by) for by in (map_stencil, map_on_gpus)
            )
            by_xla = partial(
                IdealMHD._fluxes_by_xla, self
            )  # for JAX to hash: methods of traced laws have none
            faces, flows = native_or_xla(native, by_xla, gas, cuda=cuda)
        else:
            faces, flows = self._fluxes_by_xla(gas)
        totals: list[Array] = []
        for axis, fluxes in enumerate(faces):
            parts = [difference_over_cells(self, f, grid, axis) for f in fluxes]
            totals = [a + b for a, b in zip(totals, parts, strict=True)] if totals else parts
        rates = as_rates(gas, tuple(-x for x in totals))
        edges = self._edge_fields(gas, cells, faces, flows)
        for k in range(grid.dimension):
            rates[f"magnetic_{AXES[k]}"] = _minus_curl(gas, edges, k)
        return rates

    def _fluxes_in_one_pass(
        self, by: MapStencil, gas: MagnetizedGas
    ) -> tuple[list[Variables], list[Array]]:
        """Fluxes through the faces across every axis, and which way the gas goes there: one pass for each axis.

        Normal components come first, so that one function is compiled for all of them.
        """
        carried, width = count_carried(gas), self.reconstruction.width
        ranges = ranges_over_domain(self, gas)
        faces, flows = [], []
        for axis in range(gas.grid.dimension):
            padded = padded_variables(gas, width, axis)
            values = _turned(padded, axis)
            scales = None if ranges is None else list(_turned(tuple(ranges), axis))
            arrays = *values, _on_all_faces(gas.magnetic[axis], axis)
            counts = [2 * width] * len(values) + [1]
            try:
                context = self, scales, carried
                *own, flow = map_faces(_fluxes_of_cells, arrays, counts, context, axis, by)
            except NotTranslatableError:
                return self._fluxes_by_xla(gas)
            faces.append(_turned(tuple(own), -axis))
            flows.append(flow)
        return faces, flows

    def _fluxes_by_xla(self, gas: MagnetizedGas) -> tuple[list[Variables], list[Array]]:
        """The same of all faces at once, one long vector, so that one solver is compiled."""
        pairs: list[tuple[Variables, Variables]] = []
        for axis in range(gas.grid.dimension):
            normal = _on_all_faces(gas.magnetic[axis], axis)
            below, above = (
                _with_normal(side, normal, axis) for side in reconstruct_faces(self, gas, axis)
            )
            # Eight fluxes read them: they are not reconstructed once for every one of the eight.
            kept = computed_once((*below, *above))
            pairs.append((kept[: len(below)], kept[len(below) :]))
        shapes = [left[0].shape for left, _ in pairs]
        cuts = np.cumsum([math.prod(shape) for shape in shapes])[:-1]

        def join(side: int) -> Variables:
            turned = [_turned(pair[side], axis) for axis, pair in enumerate(pairs)]
            return tuple(
                jnp.concatenate([x.reshape(-1) for x in parts])
                for parts in zip(*turned, strict=True)
            )

        left, right = join(0), join(1)
        fluxes = with_carried(self, self.riemann.flux, left, right, count_carried(gas), 0)
        fluxes = computed_once(fluxes)
        flow = flow_direction(fluxes[0], left, right, 0)
        split = [jnp.split(x, cuts) for x in (*fluxes, flow)]
        faces, flows = [], []
        for axis, shape in enumerate(shapes):
            *own, along = (parts[axis].reshape(shape) for parts in split)
            faces.append(_turned(tuple(own), -axis))
            flows.append(along)
        return faces, flows

    def _edge_fields(
        self, gas: MagnetizedGas, cells: Variables, faces: list[Variables], flows: list[Array]
    ) -> dict[int, Field]:
        """E on the edges of cells, by component; of those that move a field on faces."""
        grid, d = gas.grid, gas.grid.dimension
        odd = cast_floats(odd_at_mirrors(gas.density.boundary), gas.density.real_dtype)
        edges = {}
        for a in range(d):
            for b in range(a + 1, d):
                k = 3 - a - b
                inner = electric_fields(cells[1:4], cells[5:8], k)
                cell = gas.density.replace(data=inner, boundary=odd)
                electric, flow = [], []
                for axis in (a, b):
                    place = {"location": grid.face(axis)}
                    values = face_electric_field(faces[axis][5:8], axis, k)
                    for out, data, sides in (
                        (electric, values, odd),
                        (flow, flows[axis], gas.density.boundary),
                    ):
                        data = _own_faces(data, gas, axis)
                        if kernels_are_used():
                            # The derivative of what follows reads this alone of all that solvers give. On CPUs
                            # to keep it takes no less time than to solve again.
                            data = kept_for_derivative(data)
                        out.append(gas.density.replace(data=data, boundary=sides, **place))
                edge = edge_field(tuple(electric), tuple(flow), cell, (a, b))
                # On a wall that conducts it is 0, not the rounding of a sum: no field passes through.
                edges[k] = edge.with_boundary(cell)
        return edges


def _fluxes_of_cells(cells: list[list[Array]], context: PyTree) -> Variables:
    """Fluxes across an axis whose components come first, and which way the gas goes."""
    law, ranges, carried = context
    *cells, (normal,) = cells
    sides = sides_of_faces(law, cells, carried, ranges)
    left, right = (_with_normal(side, normal, 0) for side in sides)
    fluxes = with_carried(law, law.riemann.flux, left, right, carried, 0)
    return *fluxes, flow_direction(fluxes[0], left, right, 0)


def _on_all_faces(magnetic: Field, axis: int) -> Array:
    """The field on n + 1 faces across its axis; on a ring the last is the first."""
    wraps = magnetic.grid.periodic[axis]
    return magnetic.padded(ghost_widths(axis, magnetic.grid.dimension, 0, 1 if wraps else 0))


def _own_faces(values: Array, gas: MagnetizedGas, axis: int) -> Array:
    """Of n + 1 faces those that a field there has: on a ring all but the last."""
    count = gas.grid.local_shape_at(gas.grid.face(axis))[axis]
    return jax.lax.slice_in_dim(values, 0, count, axis=axis)


def _turned(values: Variables, axis: int) -> Variables:
    """Variables or fluxes with the components of vectors moved on, the one along `axis` first."""
    place = lambda first: [values[first + (k + axis) % 3] for k in range(3)]
    return values[0], *place(1), values[4], *place(5), *values[8:]


def _with_normal(side: Variables, normal: Array, axis: int) -> Variables:
    return *side[: 5 + axis], normal, *side[6 + axis :]


def _minus_curl(gas: MagnetizedGas, edges: dict[int, Field], i: int) -> FieldIncrement:
    """−(∇×E) along an axis of the grid, on the faces across it."""
    j, k = (i + 1) % 3, (i + 2) % 3
    total = jnp.zeros_like(gas.magnetic[i].data)
    if k in edges and j < gas.grid.dimension:
        total = total - difference(edges[k], j).data
    if j in edges and k < gas.grid.dimension:
        total = total + difference(edges[j], k).data
    return FieldIncrement(total, place_of_field(gas.grid, i))
