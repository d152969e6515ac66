"""What an antenna or a scatterer sends to great distance, from the field on a box around it."""

import cmath
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Complex, Float

from physkit.core import (
    Frame,
    ObserverError,
    State,
    as_parameter,
    concrete_value,
    get_component,
    param,
    require_positive,
    scale_array,
    static,
)
from physkit.fields import ElectromagneticField, Field
from physkit.geometry import AXES, Grid

from .._layer_checks import warn_in_layers
from .._observer import AbstractObserver, check_interval
from .._snapshot import Snapshot
from ..quantities._electromagnetic_quantities import require_electromagnetic
from ._flux_spectrum import add_sample, no_transforms, planes_at, require_samples


class FarFieldState(NamedTuple):
    """Running transforms by side of the box and component, and what makes a sum of a side's points an integral.

    - `transforms`: of side `"x0"` (low), `"x1"` (high) …, then component, `[frequencies, *plane]`.
    - `positions`: of the points of each component, per axis, ready to broadcast.
    - `areas`: of the points; 0 outside of the box.
    - `nodes`: where the sides are along their own axes.
    """

    transforms: dict[str, dict[str, Array]]
    positions: dict[str, dict[str, tuple[Array, ...]]]
    areas: dict[str, dict[str, Array]]
    nodes: dict[str, Array]


class FarField(AbstractObserver):
    """Near-to-far transform: the radiation at great distance, in any direction and at each frequency.

        E(r) → e^{ikr}/r^{(d−1)/2} F(r̂),   F = iωμ g [N⊥ − r̂ × L/η]
        N = ∮ n̂ × Ĥ e^{−ik r̂·x} dA,   L = −∮ n̂ × Ê e^{−ik r̂·x} dA
        g = 1/4π in space,   (i/4) √(2/πk) e^{−iπ/4} in the plane

    Ê and Ĥ are running Fourier transforms on a closed box around all that radiates, as of `FluxSpectrum`;
    outside of it is one medium without absorption. Directions are chosen after the run.

    **Arguments:**

    - `interval`: steps between samples: a tenth of the shortest period or less.
    - `low`, `high`: corners of the box, `[d]`; the nearest nodes are taken.
    - `frequencies`: ω, `[n]`, radians / time.
    - `directions`: r̂, `[m d]`; of any length.
    - `speed`, `impedance`: c and η of what is outside; 1 in vacuum where ε₀ = μ₀ = 1.
    - `component`: the field's name, where the state has several components.
    - `name`: of the results.

    **Results:** a dict `name` with `frequencies` `[n]`, `amplitude` F `[n m 3]`, and `intensity` ½|F|²/η `[n
    m]`, the power per solid angle (per angle in the plane), both of transforms: see `FluxSpectrum`.

    **Errors:** `ObserverError` on a line, and for a box that does not fit into the grid.

    **Good values:** sides five cells from what radiates, and outside of absorbing layers and of the region of a
    `PlaneWave`: then it is of the scattered field.

    **Reference:** Taflove & Hagness, Computational Electrodynamics (2005), chapter 8; Balanis, Antenna Theory
    (2016), chapter 12.
    """

    interval: int = static()
    low: Float[Array, " d"] = param()
    high: Float[Array, " d"] = param()
    frequencies: Float[Array, " n"] = param()
    directions: Float[Array, "m d"] = param()
    speed: Float[Array, ""] = param(1.0)
    impedance: Float[Array, ""] = param(1.0)
    component: str | None = static()
    name: str = static()

    def __init__(
        self,
        interval: int,
        low: ArrayLike | Sequence[float],
        high: ArrayLike | Sequence[float],
        frequencies: ArrayLike | Sequence[float],
        directions: ArrayLike | Sequence[Sequence[float]],
        *,
        speed: ArrayLike = 1.0,
        impedance: ArrayLike = 1.0,
        component: str | None = None,
        name: str = "far",
    ):
        self.interval = check_interval(interval)
        self.low, self.high = as_parameter(low), as_parameter(high)
        self.frequencies, self.directions = as_parameter(frequencies), as_parameter(directions)
        self.speed, self.impedance = as_parameter(speed), as_parameter(impedance)
        self.component, self.name = component, name
        require_positive(self, "speed", "impedance")

    def init(self, snapshot: Snapshot) -> FarFieldState:
        field = self._field(snapshot)
        transforms, positions, areas, nodes = {}, {}, {}, {}
        for side, axis, node in self._sides(field.grid):
            planes = planes_at(field, axis, node)
            transforms[side] = no_transforms(planes, self.frequencies)
            points = {n: self._points(getattr(field, n), axis, x.shape) for n, x in planes.items()}
            positions[side] = {n: p for n, (p, _) in points.items()}
            areas[side] = {n: a for n, (_, a) in points.items()}
            h = field.grid.spacing[axis]
            nodes[side] = node.astype(h.dtype) * h
        return FarFieldState(transforms, positions, areas, nodes)

    def __call__(self, snapshot: Snapshot, observer_state: FarFieldState):
        field, transforms = self._field(snapshot), {}
        for side, axis, node in self._sides(field.grid):
            transforms[side] = add_sample(
                observer_state.transforms[side],
                planes_at(field, axis, node),
                snapshot,
                self.interval,
                self.frequencies,
            )
        return {}, observer_state._replace(transforms=transforms)

    def summary(self, observer_state: FarFieldState) -> Frame:
        unit = self.directions / jnp.linalg.norm(self.directions, axis=1, keepdims=True)
        d = unit.shape[1]
        across = jnp.pad(unit, ((0, 0), (0, 3 - d)))
        far = jax.vmap(lambda k, i: self._amplitude(observer_state, unit, across, k, i))(
            self.frequencies / self.speed, jnp.arange(self.frequencies.shape[0])
        )
        intensity = 0.5 * jnp.sum((far * jnp.conj(far)).real, axis=-1) / self.impedance
        return {
            self.name: {"frequencies": self.frequencies, "amplitude": far, "intensity": intensity}
        }

    def _amplitude(
        self, found: FarFieldState, unit: Array, across: Array, k: Array, index: Array
    ) -> Complex[Array, "m 3"]:
        """F at one frequency."""
        kind = jax.tree.leaves(found.transforms)[0].dtype
        currents = {
            "H": jnp.zeros((unit.shape[0], 3), kind),
            "E": jnp.zeros((unit.shape[0], 3), kind),
        }
        for side, by_name in found.transforms.items():
            axis, outward = AXES.index(side[0]), 1.0 if side[1] == "1" else -1.0
            for name, values in by_name.items():
                b, x = AXES.index(name[1]), list(found.positions[side][name])
                x[axis] = found.nodes[side]
                weighted = scale_array(values[index], found.areas[side][name])

                def project(r: Array, x: list = x, weighted: Array = weighted) -> Array:
                    angle = sum(k * r[a] * x[a] for a in range(len(x)))
                    return jnp.sum(weighted * jax.lax.complex(jnp.cos(angle), -jnp.sin(angle)))

                # n̂ × b̂ is along the third axis.
                sign = outward if (axis + 1) % 3 == b else -outward
                total = sign * jax.vmap(project)(unit)
                currents[name[0]] = currents[name[0]].at[:, 3 - axis - b].add(total)
        electric, magnetic = currents["H"], -currents["E"]
        across, impedance = across.astype(kind), self.impedance.astype(kind)
        along = jnp.sum(across * electric, axis=1, keepdims=True)
        field = electric - along * across - jnp.cross(across, magnetic) / impedance
        if unit.shape[1] == 3:
            green = jnp.asarray(1 / (4 * math.pi), kind)
        else:
            turn = jnp.asarray(0.25j * cmath.exp(-0.25j * math.pi), kind)
            green = turn * jnp.sqrt(2 / (math.pi * k)).astype(kind)
        return 1j * k.astype(kind) * impedance * green * field

    def _points(
        self, part: Field, axis: int, shape: tuple[int, ...]
    ) -> tuple[tuple[Array, ...], Array]:
        """Where the points of a plane are, per axis but its own, and their areas: trapezoids between the
        corners."""
        grid, positions = part.grid, []
        area = jnp.ones((), grid.spacing.dtype)
        for k in range(grid.dimension):
            h = grid.spacing[k]
            if k == axis:
                positions.append(jnp.zeros((), h.dtype))
                continue
            first, last = (self._node(grid, k, x).astype(h.dtype) for x in (self.low, self.high))
            index = jnp.arange(shape[k]).astype(h.dtype)
            index = index if part.location.staggered[k] else index + 0.5
            inside = (index > first) & (index < last)
            weight = inside.astype(h.dtype)
            weight = jnp.where((index == first) | (index == last), 0.5, weight)
            positions.append(grid.along_axis(k, index * h))
            area = area * grid.along_axis(k, weight * h)
        return tuple(positions), area

    def _sides(self, grid: Grid) -> list[tuple[str, int, Array]]:
        out = []
        for axis in range(grid.dimension):
            for end, corner in enumerate((self.low, self.high)):
                out.append((f"{AXES[axis]}{end}", axis, self._node(grid, axis, corner)))
        return out

    def _node(self, grid: Grid, axis: int, corner: Array) -> Array:
        node = jnp.round(corner[axis] / grid.spacing[axis]).astype(jnp.int32)
        return jnp.clip(node, 1, grid.shape[axis] - 1)

    def _field(self, snapshot: Snapshot) -> ElectromagneticField:
        return require_electromagnetic(get_component(snapshot.state, self.component))

    def check_step(self, dt: Float[Array, ""]) -> None:
        require_samples(dt, self.interval, self.frequencies)

    def check_start(self, state: State) -> None:
        field = require_electromagnetic(get_component(state, self.component))
        grid = field.grid
        d = grid.dimension
        shapes = (self.low.shape, self.high.shape, self.directions.shape[1:])
        if d == 1 or any(shape != (d,) for shape in shapes):
            raise ObserverError(
                f"corners of the box are [{d}], directions [m {d}], in a plane or in space; got {shapes}"
            )
        low, high = concrete_value(self.low), concrete_value(self.high)
        lengths = concrete_value(grid.space.lengths)
        if low is None or high is None or lengths is None:
            return
        if not all(0 < a < b < length for a, b, length in zip(low, high, lengths)):
            raise ObserverError(
                f"the box lies inside of the grid's, 0 < low < high < {lengths}; got {low} and {high}"
            )
        warn_in_layers(field, np.stack([low, high]), "a corner of the box of a FarField")
