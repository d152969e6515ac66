"""Modes of waveguides: found on a cross-section, and sent into a guide."""

from collections.abc import Sequence
from dataclasses import KW_ONLY

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    Module,
    ParameterError,
    ShapeError,
    concrete_value,
    data,
    explain_call,
    static,
)
from physkit.geometry import AXES, Grid

from ...states._electromagnetic_field import place_of
from ._incident_wave import AbstractIncidentWave, Face
from ._media import AbstractMedium, medium_at
from ._sources import require_carried
from ._waveforms import as_waveform


class WaveguideMode(Module):
    """A wave that keeps its shape along a guide: E, H ∝ cos(βx − ωt), of power 1 per length out of the plane.

    - `electric`, `magnetic`: of the components along the cross-section, at its points `[n]`.
    - `wavenumber`: β on the grid. `frequency`: ω. `spacing`: of the grid along the guide.
    - `axis`: along the guide. `node`: of the cross-section.
    - `names`: of the two components, `("Ez", "Hy")`.
    """

    _: KW_ONLY
    electric: Float[Array, " n"] = data()
    magnetic: Float[Array, " n"] = data()
    wavenumber: Float[Array, ""] = data()
    frequency: Float[Array, ""] = data()
    spacing: Float[Array, ""] = data()
    axis: int = static()
    node: int = static()
    names: tuple[str, str] = static()


@explain_call
def waveguide_mode(
    media: AbstractMedium | Sequence[AbstractMedium],
    grid: Grid,
    axis: str,
    position: float,
    frequency: ArrayLike,
    number: int = 0,
    *,
    mode: str = "TM",
    dt: ArrayLike | None = None,
    speed: ArrayLike = 1.0,
    impedance: ArrayLike = 1.0,
) -> WaveguideMode:
    """A guided mode of a slab in the plane, as it runs on Yee's grid.

        (D_yy + ε ω²/c²) E_z = β² E_z   (TM);     ε (D_y ε⁻¹ D_y + ω²/c²) H_z = β² H_z   (TE)

    with sin(β h/2)/(h/2) for β and sin(ω dt/2)/(dt/2) for ω: so the grid neither reflects nor changes it.

    **Arguments:**

    - `media`: those of `Maxwell`; dispersive ones are not seen.
    - `axis`: along the guide, `"x"`. `position`: of the cross-section along it; the nearest nodes are taken.
    - `frequency`: ω, radians / time.
    - `number`: 0 for the fundamental mode, with the largest β.
    - `mode`: `"TM"` (Ez out of the plane) or `"TE"` (Hz).
    - `dt`: the step; without it ω is taken as it is, a relative error of (ω dt)²/24.
    - `speed`, `impedance`: c and η of vacuum.

    **Errors:** `ShapeError` unless the grid is a plane. `ParameterError` for a mode that no guide holds.

    **Reference:** Snyder & Love, Optical Waveguide Theory (1983), chapter 12.
    """
    if grid.dimension != 2:
        raise ShapeError(f"modes are of guides in the plane; this grid has {grid.dimension} axes")
    if mode not in ("TM", "TE"):
        raise ParameterError(f'mode is "TM" (Ez) or "TE" (Hz); got {mode!r}')
    a = grid.axis(axis)
    given = tuple(media) if isinstance(media, list | tuple) else (media,)
    omega = jnp.asarray(frequency, grid.spacing.dtype)
    sine = omega if dt is None else 2 / dt * jnp.sin(0.5 * omega * dt)
    node = _node(grid, a, position)
    numbers = (omega, sine, jnp.asarray(speed), jnp.asarray(impedance))
    found, values, across = _solve(given, grid, a, node, numbers, number, mode)
    _require_guided(values, across, (sine / speed) ** 2, number)
    return found


@eqx.filter_jit
def _solve(
    media: tuple[AbstractMedium, ...],
    grid: Grid,
    a: int,
    node: int,
    numbers: tuple[Array, Array, Array, Array],
    number: int,
    mode: str,
) -> tuple[WaveguideMode, Array, Array]:
    """The mode, all eigenvalues and ε across the guide, from ω, its sine in time, c and η."""
    b, kind, h = 1 - a, grid.spacing.dtype, grid.spacing
    omega, sine, speed, impedance = (x.astype(kind) for x in numbers)

    def permittivity(name: str) -> Array:
        place = place_of(name, grid)
        found = medium_at(media, grid, place, name).permittivity
        return jnp.take(jnp.broadcast_to(found, grid.local_shape_at(place)), node, axis=a)

    electric, magnetic = ("Ez", "H" + AXES[b]) if mode == "TM" else ("E" + AXES[b], "Hz")
    across = permittivity(electric)
    square = (sine / speed) ** 2
    # From the points of E_z or H_z to those half a cell off.
    difference = jnp.asarray(_difference(grid, b, mode), kind) / h[b]
    if mode == "TM":
        inner = slice(1, -1) if not grid.periodic[b] else slice(None)
        across = across[inner]
        matrix = jnp.diag(across * square) - difference.T @ difference
    else:
        root = jnp.sqrt(across)
        slope = difference / permittivity("E" + AXES[a])[:, None]
        matrix = jnp.diag(across * square) - root[:, None] * (difference.T @ slope) * root[None]
    values, vectors = jnp.linalg.eigh(matrix)
    beta, shape = jnp.sqrt(values[-1 - number]), vectors[:, -1 - number]
    # ½ ∫ E × H = 1 across the guide.
    sign = 1.0 if (a, b) == ((0, 1) if mode == "TE" else (1, 0)) else -1.0
    if mode == "TM":
        ratio = sign * beta * speed / (sine * impedance)
        shape = shape * jnp.sqrt(2 / (jnp.abs(ratio) * h[b]))
        if not grid.periodic[b]:
            shape = jnp.pad(shape, 1)
        E, H = shape, ratio * shape
    else:
        H = root * shape
        E = sign * beta * speed * impedance / (sine * across) * H
        size = jnp.sqrt(2 / (jnp.abs(jnp.sum(E * H)) * h[b]))
        E, H = E * size, H * size
    k = 2 / h[a] * jnp.arcsin(0.5 * beta * h[a])
    found = WaveguideMode(
        electric=E,
        magnetic=H,
        wavenumber=k,
        frequency=omega,
        spacing=h[a],
        axis=a,
        node=node,
        names=(electric, magnetic),
    )
    return found, values, across


class ModeSource(AbstractIncidentWave):
    """Sends a mode of a waveguide one way: beyond its plane is the whole field, before it what comes back.

    **Arguments:**

    - `mode`: of `waveguide_mode`, on the same grid.
    - `waveform`: amplitude w(t) in the plane: power w². `ContinuousWave(mode.frequency)` or a `WavePulse` about
      it, whose other frequencies see the same mode: some of them goes back.
    - `backward`: whether the wave goes down the axis.

    **Errors:** `ShapeError` for a mode of another grid.

    **Reference:** Taflove & Hagness, Computational Electrodynamics (2005), chapter 5.
    """

    mode: WaveguideMode
    waveform: Module = eqx.field(converter=as_waveform)
    backward: bool = static(default=False)

    def check_grid(self, grid: Grid) -> None:
        if grid.dimension != 2:
            raise ShapeError(
                f"modes are of guides in the plane; this grid has {grid.dimension} axes"
            )
        b = 1 - self.mode.axis
        location = place_of(self.mode.names[0], grid)
        points = grid.shape[b] + (location.staggered[b] and not grid.periodic[b])
        if self.mode.electric.shape != (points,):
            raise ShapeError(
                f"this mode has {self.mode.electric.shape[0]} points, the grid {points} across the guide: "
                "waveguide_mode(media, grid, …) of this grid"
            )

    def check_components(self, names: Sequence[str]) -> None:
        require_carried(self.mode.names[0], names, "a mode with E")

    def faces(self, grid: Grid) -> list[Face]:
        del grid
        return [Face(self.mode.axis, self.mode.node, not self.backward)]

    def extent(self, grid: Grid, axis: int) -> None:
        del grid, axis

    def incident(self, clock: Clock, grid: Grid, name: str, x: Sequence[Array]) -> Array:
        mode, sign = self.mode, -1.0 if self.backward else 1.0
        profile = mode.electric if name == mode.names[0] else sign * mode.magnetic
        b = 1 - mode.axis
        comm, points = grid.space.comm, x[b].shape[b]
        if comm.axis_size(b) > 1:
            first = comm.axis_index(b) * grid.local_shape[b]
            profile = jax.lax.dynamic_slice_in_dim(profile, first, points)
        away = x[mode.axis] - mode.node * grid.spacing[mode.axis]
        delay = sign * mode.wavenumber / mode.frequency * away
        return grid.along_axis(b, profile) * self.waveform(clock.t - delay)


def _node(grid: Grid, axis: int, position: float) -> int:
    length = concrete_value(grid.space.lengths)
    if length is None:
        raise ParameterError("the plane of a mode is a number: ask for it outside of jit and grad")
    n = grid.shape[axis]
    node = round(float(position) / float(length[axis]) * n)
    if not 0 < node < n:
        raise ParameterError(
            f"a cross-section lies inside of the box, 0 < {AXES[axis]} < {float(length[axis]):g}; got "
            f"{position}"
        )
    return node


def _difference(grid: Grid, axis: int, mode: str) -> np.ndarray:
    """Differences of neighbors along an axis: to the cells from nodes inside, for TE to the nodes from
    cells."""
    n = grid.shape[axis]
    if grid.periodic[axis]:
        return (
            np.roll(np.eye(n), 1, axis=1) - np.eye(n)
            if mode == "TM"
            else np.eye(n) - np.roll(np.eye(n), -1, axis=1)
        )
    between = np.eye(n, n - 1) - np.eye(n, n - 1, k=-1)  # of n − 1 nodes inside, to n cells
    if mode == "TM":
        return between
    # Nothing changes across a conductor: the slope is zero at both walls.
    return np.pad(-between.T, ((1, 1), (0, 0)))


def _require_guided(values: Array, across: Array, square: Array, number: int) -> None:
    """**Errors:** `ParameterError` where the mode is a wave of what is around the guide."""
    eigenvalues, epsilon, factor = (concrete_value(x) for x in (values, across, square))
    if eigenvalues is None or epsilon is None or factor is None:
        return
    around = max(float(epsilon[0]), float(epsilon[-1])) * float(factor)
    guided = int(np.sum(eigenvalues > around))
    if not 0 <= number < guided:
        raise ParameterError(
            f"there are {guided} guided modes at this frequency, numbered from 0; got {number}"
        )
