"""Sources: currents at points and on planes."""

import abc
from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    Module,
    ParameterError,
    concrete_value,
    param,
    replace_fields,
    static,
)
from physkit.geometry import AXES, Grid

from ..._point_spread import hat_by_volume
from ...states._electromagnetic_field import COMPONENTS, place_of
from .._source_checks import require_before_layer, require_inside
from ..absorbing._convolutional_pml import ConvolutionalPML
from ._shapes import NodePlane
from ._waveforms import as_waveform


class AbstractSource(Module):
    """Something that drives the field: it adds to the curl that moves a component.

    ε ∂E/∂t = ∇×H − J,   μ ∂H/∂t = −(∇×E + M)
    """

    @abc.abstractmethod
    def add_to_curl(self, curl: Array, clock: Clock, grid: Grid, name: str) -> Array:
        """∇×H − J where `name` is a component of E, ∇×E + M where it is one of H, at `clock.t`."""

    def prepare(self, grid: Grid, dt: Array) -> "AbstractSource":
        """The source as steps of length `dt` take it, with what is the same in all of them."""
        del grid, dt
        return self

    def check_grid(self, grid: Grid) -> None:
        """**Errors:** where the source does not fit the grid."""
        del grid

    def check_components(self, names: Sequence[str]) -> None:
        """**Errors:** where it drives a component of E that the field, with those in `names`, does not have."""
        del names

    def faces_in_media(self, grid: Grid) -> list[NodePlane]:
        """Planes on which the source must know the permittivity."""
        del grid
        return []

    def check_permittivity(
        self, face: NodePlane, found: np.ndarray, vacuum_permittivity: np.ndarray
    ) -> None:
        """**Errors:** where the source does not work with the permittivity found on one of its faces."""
        del face, found, vacuum_permittivity

    def check_layer(self, grid: Grid, layer: ConvolutionalPML | None) -> None:
        """**Errors:** where the source does not work within the absorbing layer."""
        del grid, layer


class PointDipole(AbstractSource):
    """A current at a point: a short antenna, or the dipole of an atom.

        J(x, t) = I(t) δ(x − x₀) along one axis,   I = dp/dt

    In the plane it is a line of current, on a line a sheet. Shared between the nearest points, linearly.

    **Arguments:**

    - `position`: x₀, `[d]`.
    - `component`: of E, along which the current flows: `"Ez"`.
    - `waveform`: I(t): a function of time, such as `ContinuousWave`; current · length in space.

    **Errors:** `ShapeError` for a position with another number of entries than the grid has axes;
    `ParameterError` for one outside of the box or within an absorbing layer, and for a component that the field
    does not have.
    """

    position: Float[Array, " d"] = param()
    component: str = static()
    waveform: Module = eqx.field(converter=as_waveform)

    def __check_init__(self):
        require_electric(self.component)

    def check_grid(self, grid: Grid) -> None:
        require_inside(self.position, grid, "a dipole")

    def check_components(self, names: Sequence[str]) -> None:
        require_carried(self.component, names, "a current")

    def check_layer(self, grid: Grid, layer: ConvolutionalPML | None) -> None:
        require_before_layer(self.position, grid, layer, "a dipole")

    def add_to_curl(self, curl: Array, clock: Clock, grid: Grid, name: str) -> Array:
        if name != self.component:
            return curl
        density = self.waveform(clock.t)
        for k in range(grid.dimension):
            density = density * hat_by_volume(grid, place_of(name, grid), k, self.position[k])
        return curl - density.astype(curl.dtype)


class CurrentSheet(AbstractSource):
    """A current in a plane across an axis: it sends plane waves to both sides.

        J(x, t) = K(t) δ(x − x₀),   E = −½ η K(t − |x − x₀|/c)

    **Arguments:**

    - `axis`: the one across the sheet, `"x"`.
    - `position`: x₀ along it.
    - `component`: of E, along which the current flows.
    - `waveform`: K(t), current / length.

    **Errors:** `ParameterError` for a current across its own sheet, for a sheet outside of the box or within an
    absorbing layer, and for a component that the field does not have.
    """

    axis: str = static()
    position: Float[Array, ""] = param()
    component: str = static()
    waveform: Module = eqx.field(converter=as_waveform)

    def __check_init__(self):
        require_electric(self.component)
        if self.component[1] == self.axis:
            raise ParameterError(
                f"a sheet across {self.axis} carries no current along {self.axis}; got {self.component}"
            )

    def check_grid(self, grid: Grid) -> None:
        if (place := self._place(grid)) is not None:
            require_inside(place, grid, "a sheet")

    def check_components(self, names: Sequence[str]) -> None:
        require_carried(self.component, names, "a current")

    def check_layer(self, grid: Grid, layer: ConvolutionalPML | None) -> None:
        if (place := self._place(grid)) is not None and layer is not None:
            axis = grid.axis(self.axis)
            sides = tuple(s for s in layer.sides_of(grid) if s[0] == AXES[axis])
            across = replace_fields(layer, {"sides": sides})
            require_before_layer(place, grid, across, "a sheet")

    def _place(self, grid: Grid) -> np.ndarray | None:
        """A point of the sheet, in the middle of the box along it; None where a trace hides it."""
        axis = grid.axis(self.axis)
        x, lengths = concrete_value(self.position), concrete_value(grid.space.lengths)
        if x is None or lengths is None:
            return None
        return np.where(np.arange(grid.dimension) == axis, x, 0.5 * lengths)

    def add_to_curl(self, curl: Array, clock: Clock, grid: Grid, name: str) -> Array:
        if name != self.component:
            return curl
        place = place_of(name, grid)
        density = self.waveform(clock.t) * hat_by_volume(
            grid, place, grid.axis(self.axis), self.position
        )
        return curl - density.astype(curl.dtype)


def require_electric(component: str) -> None:
    """**Errors:** `ParameterError` for a name that is not a component of E."""
    if component not in COMPONENTS[:3]:
        raise ParameterError(f"currents flow along Ex, Ey or Ez; got {component!r}")


def require_carried(component: str, names: Sequence[str], what: str) -> None:
    """**Errors:** `ParameterError` for a component of E that the field does not have."""
    if component not in names:
        raise ParameterError(
            f"{what} along {component} drives nothing: this field has {', '.join(names)}. In the plane and on "
            'a line ElectromagneticField.of(grid, mode="TM") has Ez, mode="TE" what is along the plane'
        )
