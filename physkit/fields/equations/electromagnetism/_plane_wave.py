"""Plane waves by total and scattered field."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    Module,
    ParameterError,
    ShapeError,
    concrete_value,
    param,
    require_positive,
    static,
)
from physkit.geometry import AXES, Grid

from ._incident_wave import AbstractIncidentWave, Face
from ._shapes import NodePlane
from ._sources import require_carried
from ._waveforms import as_waveform

_NEWTON_STEPS = 8  # for the wavenumber on the grid, from that in the medium


class PlaneWave(AbstractIncidentWave):
    """A plane wave in a region: the whole field inside of it, only what is scattered outside.

        E(x, t) = e w(t − k̂·(x − x₀)/c),   H = k̂ × E/η

    The region ends `margin` cells before every side that does not repeat; absorbing layers must be narrower,
    and the medium at its faces that of the wave. x₀ is the corner that the wave comes to first: there it is
    w(t).

    **Arguments:**

    - `direction`: k̂, `[d]`, of any length.
    - `polarization`: e, `[3]`, across the direction: of the electric field.
    - `waveform`: w(t).
    - `margin`: cells between the sides and the region.
    - `frequency`: ω, radians / time, at which the wave travels as waves do on the grid; without it at c, and
      what leaks out of the region is larger.
    - `speed`, `impedance`: c and η of the medium that it comes through: 1/n of those of vacuum.

    **Good values:** `frequency` that of the waveform.

    **Errors:** `ParameterError` for a direction along an axis that repeats, a polarization along the
    direction or one that the field does not have, a margin that an absorbing layer fills, or another medium at
    the faces.

    **Reference:** Taflove & Hagness, Computational Electrodynamics (2005), §5.6–5.9.
    """

    direction: Float[Array, " d"] = param()
    polarization: Float[Array, " 3"] = param()
    waveform: Module = eqx.field(converter=as_waveform)
    margin: int = static(default=15)
    frequency: Float[Array, ""] | None = param(None)
    speed: Float[Array, ""] = param(1.0)
    impedance: Float[Array, ""] = param(1.0)

    def __check_init__(self):
        require_positive(self, "speed", "impedance")
        k, e = concrete_value(self.direction), concrete_value(self.polarization)
        if k is None or e is None:
            return
        if not np.any(k != 0) or e.shape != (3,):
            raise ParameterError(
                f"a wave has a direction and a polarization [3]; got {k.tolist()}, {e.tolist()}"
            )
        along = abs(np.dot(k, e[: k.size]))
        if along > 1e-5 * np.linalg.norm(k) * np.linalg.norm(e):
            raise ParameterError(
                f"light is polarized across its direction {k.tolist()}; got {e.tolist()}"
            )

    def check_grid(self, grid: Grid) -> None:
        if self.direction.shape != (grid.dimension,):
            raise ShapeError(
                f"a direction on this grid is [{grid.dimension}]; got {list(self.direction.shape)}"
            )
        direction = concrete_value(self.direction)
        for k, wraps in enumerate(grid.periodic):
            if wraps and direction is not None and direction[k] != 0:
                raise ParameterError(
                    f"the box repeats along {AXES[k]}, where this wave would come in"
                )
            if not wraps and grid.shape[k] <= 2 * self.margin:
                raise ShapeError(
                    f"a margin of {self.margin} cells on both sides leaves nothing of {grid.shape[k]} along "
                    f"{AXES[k]}"
                )

    def check_components(self, names: Sequence[str]) -> None:
        polarization = concrete_value(self.polarization)
        if polarization is None:
            return
        for axis, part in zip(AXES, polarization, strict=True):
            if part != 0:
                require_carried(f"E{axis}", names, "a wave polarized")

    def faces_in_media(self, grid: Grid) -> list[NodePlane]:
        ranges = [self.extent(grid, k) or (0, grid.shape[k]) for k in range(grid.dimension)]
        low, high = zip(*ranges, strict=True)
        return [NodePlane(axis, node, low, high) for axis, node, _ in self.faces(grid)]

    def check_permittivity(
        self, face: NodePlane, found: np.ndarray, vacuum_permittivity: np.ndarray
    ) -> None:
        numbers = [concrete_value(x) for x in (self.speed, self.impedance)]
        if any(x is None for x in numbers):
            return
        own = 1 / float(np.prod([*numbers, vacuum_permittivity]))
        if not np.allclose(found, own, rtol=1e-3):
            raise ParameterError(
                f"the medium at the faces of a plane wave's region is that of the wave, ε = {own:.4g}; at "
                f"node {face.node} along {AXES[face.axis]} there is another. End bodies before the faces, or "
                "give the wave the speed and impedance 1/n of a medium that is all around; CurrentSheet sends "
                "waves into any media"
            )

    def faces(self, grid: Grid) -> list[Face]:
        out = []
        for axis in range(grid.dimension):
            extent = self.extent(grid, axis)
            if extent is not None:
                out += [Face(axis, extent[0], True), Face(axis, extent[1], False)]
        return out

    def extent(self, grid: Grid, axis: int) -> tuple[int, int] | None:
        return None if grid.periodic[axis] else (self.margin, grid.shape[axis] - self.margin)

    def prepare(self, grid: Grid, dt: Array) -> "_PreparedPlaneWave":
        return _PreparedPlaneWave(self, *self._slowness(dt, grid))

    def incident(self, clock: Clock, grid: Grid, name: str, x: Sequence[Array]) -> Array:
        return self.prepare(grid, clock.dt).incident(clock, grid, name, x)

    def _slowness(self, dt: Array, grid: Grid) -> tuple[Array, Array]:
        """k/ω `[d]`, and the same with sines of grid waves in place of k and ω, `[3]`, which H follows from."""
        unit = self.direction / jnp.sqrt(jnp.sum(self.direction**2))
        spatial = jnp.zeros(3 - grid.dimension, unit.dtype)
        if self.frequency is None:
            k = unit / self.speed
            return k, jnp.concatenate([k, spatial])
        h, omega = grid.spacing, self.frequency
        target = (jnp.sin(0.5 * omega * dt) / (self.speed * dt)) ** 2
        k = omega / self.speed
        for _ in range(_NEWTON_STEPS):
            half = 0.5 * k * unit * h
            excess = jnp.sum((jnp.sin(half) / h) ** 2) - target
            k = k - excess / jnp.sum(jnp.sin(half) * jnp.cos(half) * unit / h)
        sines = 2 / h * jnp.sin(0.5 * k * unit * h) / (2 / dt * jnp.sin(0.5 * omega * dt))
        return k * unit / omega, jnp.concatenate([sines, spatial])


class _PreparedPlaneWave(AbstractIncidentWave):
    """A plane wave on a grid, and how slow it is there."""

    wave: PlaneWave
    slowness: Float[Array, " d"]
    curl_of: Float[Array, " 3"]

    def faces(self, grid: Grid) -> list[Face]:
        return self.wave.faces(grid)

    def extent(self, grid: Grid, axis: int) -> tuple[int, int] | None:
        return self.wave.extent(grid, axis)

    def incident(self, clock: Clock, grid: Grid, name: str, x: Sequence[Array]) -> Array:
        wave, delay = self.wave, jnp.zeros((), clock.dt.dtype)
        for axis in range(grid.dimension):
            low, high = self.extent(grid, axis) or (0, grid.shape[axis])
            h = grid.spacing[axis]
            corner = jnp.where(wave.direction[axis] < 0, high * h, low * h)
            delay = delay + self.slowness[axis] * (x[axis] - corner)
        i = AXES.index(name[1])
        if name[0] == "E":
            size = wave.polarization[i]
        else:
            j, k = (i + 1) % 3, (i + 2) % 3
            across = self.curl_of[j] * wave.polarization[k] - self.curl_of[k] * wave.polarization[j]
            size = across * (wave.speed / wave.impedance)
        return size * wave.waveform(clock.t - delay)
