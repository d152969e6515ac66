"""The power that passes a plane at each frequency, by running Fourier transforms."""

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
    static,
)
from physkit.fields import ElectromagneticField, Field
from physkit.fields.equations import WaveguideMode
from physkit.geometry import AXES

from .._layer_checks import warn_in_layers
from .._observer import AbstractObserver, check_interval
from .._snapshot import Snapshot
from ..quantities._electromagnetic_quantities import require_electromagnetic


class FluxSpectrumState(NamedTuple):
    """Ê and Ĥ along the plane by name, `[frequencies, *plane]`, and the area of each of its points."""

    transforms: dict[str, Array]
    areas: dict[str, Array]


class FluxSpectrum(AbstractObserver):
    """Running Fourier transforms of the field on a plane, and the power that passes it at each frequency.

        Ê(ω) = Σ E(t) e^{iωt} Δt,   P(ω) = ½ Re ∫ Ê × Ĥ* · dA

    Of a pulse, P of one run over P of another is a transmission or a reflection at all frequencies at once.
    Of a steady wave of amplitude A over a time T, Ê = AT/2 at its frequency.

    **Arguments:**

    - `interval`: steps Δt/dt between samples: a tenth of the shortest period or less.
    - `axis`: the one across the plane.
    - `position`: of the plane along it; the next plane of nodes is taken.
    - `frequencies`: ω, `[n]`, radians / time.
    - `component`: the field's name, where the state has several components.
    - `name`: of the results.

    **Results:** a dict `name` with `frequencies` `[n]`, `flux` `[n]` (positive upwards along the axis), and the
    transforms by component, `Ez` … `[n, *plane]`, H as the mean of both sides of the plane.

    **Errors:** `ObserverError` for a plane on a wall or outside of the box, or fewer than two samples a period.
    """

    interval: int = static()
    axis: str = static()
    position: Float[Array, ""] = param()
    frequencies: Float[Array, " n"] = param()
    component: str | None = static()
    name: str = static()

    def __init__(
        self,
        interval: int,
        axis: str,
        position: ArrayLike,
        frequencies: ArrayLike | Sequence[float],
        *,
        component: str | None = None,
        name: str = "flux",
    ):
        self.interval, self.axis = check_interval(interval), axis
        self.position = as_parameter(position)
        self.frequencies = as_parameter(frequencies)
        self.component, self.name = component, name

    def init(self, snapshot: Snapshot) -> FluxSpectrumState:
        field = self._field(snapshot)
        grid, axis = field.grid, field.grid.axis(self.axis)
        if self.frequencies.ndim != 1:
            raise ObserverError(
                f"frequencies are [n]; got an array of shape {list(self.frequencies.shape)}"
            )
        planes = self._planes(field)
        transforms = no_transforms(planes, self.frequencies)
        areas = {}
        for n in planes:
            # Whole lengths, with half a cell for points on walls.
            area = jnp.ones((), grid.spacing.dtype)
            for k in range(grid.dimension):
                if k == axis:
                    continue
                points = planes[n].shape[k]
                weight = jnp.ones(points, grid.spacing.dtype)
                if points == grid.shape[k] + 1:
                    weight = weight.at[jnp.array([0, -1])].set(0.5)
                area = area * grid.along_axis(k, weight * grid.spacing[k])
            areas[n] = jnp.broadcast_to(area, planes[n].shape)
        return FluxSpectrumState(transforms, areas)

    def __call__(self, snapshot: Snapshot, observer_state: FluxSpectrumState):
        planes = self._planes(self._field(snapshot))
        transforms = add_sample(
            observer_state.transforms, planes, snapshot, self.interval, self.frequencies
        )
        return {}, FluxSpectrumState(transforms, observer_state.areas)

    def summary(self, observer_state: FluxSpectrumState) -> Frame:
        transforms, a = observer_state.transforms, AXES.index(self.axis)
        total = jnp.zeros(self.frequencies.shape, self.frequencies.dtype)
        for b, c, sign in (((a + 1) % 3, (a + 2) % 3, 1), ((a + 2) % 3, (a + 1) % 3, -1)):
            electric, magnetic = "E" + AXES[b], "H" + AXES[c]
            if electric in transforms:
                power = (transforms[electric] * jnp.conj(transforms[magnetic])).real
                power = power * observer_state.areas[electric][None]
                total = total + 0.5 * sign * jnp.sum(power.reshape(power.shape[0], -1), axis=1)
        return {self.name: {"frequencies": self.frequencies, "flux": total, **transforms}}

    def _field(self, snapshot: Snapshot) -> ElectromagneticField:
        return require_electromagnetic(get_component(snapshot.state, self.component))

    def _planes(self, field: ElectromagneticField) -> dict[str, Array]:
        return planes_at(field, field.grid.axis(self.axis), self._node(field))

    def check_step(self, dt: Float[Array, ""]) -> None:
        require_samples(dt, self.interval, self.frequencies)

    def check_start(self, state: State) -> None:
        field = require_electromagnetic(get_component(state, self.component))
        grid = field.grid
        lengths, position = concrete_value(grid.space.lengths), concrete_value(self.position)
        if lengths is None or position is None:
            return
        length, n = float(lengths[grid.axis(self.axis)]), grid.shape[grid.axis(self.axis)]
        if not 0.5 / n < float(position) / length < 1 - 0.5 / n:
            raise ObserverError(
                f"a plane lies inside of the box, 0 < {self.axis} < {length:g}; got {float(position):g}"
            )
        place = np.full((1, grid.dimension), np.nan)
        place[0, grid.axis(self.axis)] = position
        warn_in_layers(field, place, "the plane of a FluxSpectrum")

    def _node(self, field: ElectromagneticField) -> Array:
        grid = field.grid
        axis = grid.axis(self.axis)
        node = jnp.round(self.position / grid.spacing[axis]).astype(jnp.int32)
        return jnp.clip(node, 1, grid.shape[axis] - 1)


def mode_amplitudes(
    spectrum: dict[str, Array], mode: WaveguideMode
) -> tuple[Complex[Array, " n"], Complex[Array, " n"]]:
    """Amplitudes of a guide's mode in what a `FluxSpectrum` found: up and down the axis.

        Ê = (a₊ + a₋) e + …,   Ĥ = (a₊ − a₋) h + …,   a± = (Σ Ê h ± Σ e Ĥ) / 2 Σ e h

    Other modes, and what radiates, are orthogonal to it and do not count. |a|² is the power in the mode: of a
    `ModeSource` of waveform w in a straight guide a₊ is ∫ w e^{iωt} dt, up to a phase. Over that of the source
    they are the elements of a scattering matrix.

    **Arguments:**

    - `spectrum`: `result.summary[name]` of a `FluxSpectrum` across the guide.
    - `mode`: of `waveguide_mode`, along the same axis; found on any cross-section that looks the same.

    **Returns:** a₊ and a₋, `[frequencies]`; right at the mode's frequency.

    **Errors:** `ObserverError` for a plane along the guide, or of another grid.

    **Reference:** Snyder & Love, Optical Waveguide Theory (1983), §31.
    """
    electric, magnetic = mode.names
    if electric not in spectrum or magnetic not in spectrum:
        raise ObserverError(
            f"this mode has {electric} and {magnetic}, the spectrum "
            f"{', '.join(n for n in spectrum if n[0] in 'EH')}: its plane must lie across the guide, "
            f'FluxSpectrum(interval, "{AXES[mode.axis]}", …)'
        )
    E, H = (spectrum[name].reshape(spectrum[name].shape[0], -1) for name in mode.names)
    if E.shape[1:] != mode.electric.shape:
        raise ObserverError(
            f"this mode has {mode.electric.shape[0]} points, the spectrum {E.shape[1]}: find the mode on the "
            "grid of the simulation"
        )
    # H of the spectrum is the mean of both sides of the plane.
    between = jnp.cos(0.5 * mode.wavenumber * mode.spacing)
    size = 2 * jnp.sum(mode.electric * mode.magnetic)
    along = jnp.sum(E * (mode.magnetic / size).astype(E.dtype)[None], axis=1)
    across = jnp.sum(H * (mode.electric / (between * size)).astype(H.dtype)[None], axis=1)
    return along + across, along - across


def planes_at(field: ElectromagneticField, axis: int, node: Array) -> dict[str, Array]:
    """The components along a plane of nodes, of the whole domain, `[*points]` with length 1 along the axis.

    H is the mean of both sides of the plane; at a point there are Ê and Ĥ of a pair that makes power.
    """
    along = [AXES[k] for k in range(3) if k != axis]
    pairs = [("E" + along[0], "H" + along[1]), ("E" + along[1], "H" + along[0])]
    out = {}
    for electric, magnetic in pairs:
        E, H = getattr(field, electric), getattr(field, magnetic)
        if E is None or H is None:
            continue
        out[electric] = plane_of(E, axis, node)
        out[magnetic] = 0.5 * (plane_of(H, axis, node - 1) + plane_of(H, axis, node))
    return out


def require_samples(dt: Array, interval: int, frequencies: Float[Array, " n"]) -> None:
    """**Errors:** `ObserverError` for fewer than two samples a period, of which another frequency is seen."""
    omega, step = concrete_value(frequencies), concrete_value(dt)
    if omega is None or step is None or omega.size == 0:
        return
    highest, time = float(np.max(np.abs(omega))), interval * float(step)
    if highest * time >= np.pi:
        raise ObserverError(
            f"a sample every {interval} steps, {time:.3g}, is fewer than two a period of the "
            f"frequency {highest:.4g} (radians / time): a shorter interval, or lower frequencies"
        )


def no_transforms(planes: dict[str, Array], frequencies: Float[Array, " n"]) -> dict[str, Array]:
    """Transforms before the first sample, `[n, *plane]` by component."""
    kind = jnp.complex128 if frequencies.dtype == jnp.float64 else jnp.complex64
    return {name: jnp.zeros((frequencies.shape[0], *x.shape), kind) for name, x in planes.items()}


def add_sample(
    transforms: dict[str, Array],
    planes: dict[str, Array],
    now: Snapshot,
    interval: int,
    frequencies: Float[Array, " n"],
) -> dict[str, Array]:
    """Σ u(t) e^{iωt} Δt with one sample more: E at the clock's time, H half a step before in Yee's steps."""
    phase, step = jax.vmap(now.clock.phase)(frequencies), interval * now.clock.dt
    behind = 0.5 * frequencies * now.clock.dt if now.integrator.staggers_time else 0
    out = {}
    for name, x in planes.items():
        angle = phase if name[0] == "E" else phase - behind
        turn = jax.lax.complex(step * jnp.cos(angle), step * jnp.sin(angle))
        turn = turn.reshape(-1, *[1] * x.ndim)
        out[name] = transforms[name] + turn * x[None].astype(turn.dtype)
    return out


def plane_of(field: Field, axis: int, index: Array) -> Array:
    """The points number `index`, of the whole domain, along an axis, of a field over all devices."""
    grid, x = field.grid, field.data
    if grid.space.comm.size == 1:
        return jax.lax.dynamic_slice_in_dim(x, index, 1, axis=axis)
    comm, shared = grid.space.comm, grid.includes_walls(field.location)
    whole = [1 if k == axis else grid.shape[k] + shared[k] for k in range(grid.dimension)]
    here = index - comm.axis_index(axis) * grid.local_shape[axis]
    local = jnp.clip(here, 0, grid.local_shape[axis] - 1)
    plane = jnp.where(here == local, jax.lax.dynamic_slice_in_dim(x, local, 1, axis=axis), 0)
    start: list = []
    for k in range(grid.dimension):
        if k == axis:
            start.append(0)
            continue
        first = comm.axis_index(k) * grid.local_shape[k]
        start.append(first)
        if shared[k]:
            # A layer that two devices hold counts once: for the upper one, but at the end.
            keep = jnp.arange(plane.shape[k]) < grid.local_shape[k]
            keep = keep | (comm.axis_index(k) == comm.axis_size(k) - 1)
            plane = plane * grid.along_axis(k, keep.astype(plane.dtype))
    # The shared layer is zero on one of both: a sum of overlapping blocks is the whole.
    # Of one type, whichever of them are a device's and whichever plain 0.
    first_points = [jnp.asarray(first, jnp.int32) for first in start]
    return comm.psum(jax.lax.dynamic_update_slice(jnp.zeros(whole, x.dtype), plane, first_points))
