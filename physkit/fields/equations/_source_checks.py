"""What equations of waves ask of sources: a place in the box, before layers, and waves that a grid carries."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Array

from physkit.core import (
    DeclarationError,
    ParameterError,
    ShapeError,
    concrete_value,
    describe,
    warn,
)
from physkit.geometry import AXES, Grid

from .absorbing._convolutional_pml import ConvolutionalPML
from .electromagnetism._waveforms import AbstractWaveform

_FEWEST = 2.0  # cells in the shortest wave of a grid


def require_sources(sources: tuple, kind: type, examples: str) -> None:
    """**Errors:** `DeclarationError` for what is no source of these equations."""
    for source in sources:
        if not isinstance(source, kind):
            raise DeclarationError(f"sources are {examples}; got {describe(source)}")


def require_inside(position: Array | np.ndarray, grid: Grid, what: str) -> None:
    """**Errors:** `ShapeError` for a position of another dimension, `ParameterError` for one outside of the
    box."""
    if position.shape[-1:] != (grid.dimension,):
        raise ShapeError(
            f"the position of {what} on this grid is [{grid.dimension}]; got {list(position.shape)}"
        )
    x, lengths = concrete_value(position), concrete_value(grid.space.lengths)
    if x is None or lengths is None:
        return
    outside = ~((x >= 0) & (x <= lengths))
    if outside.any():
        bad = x.reshape(-1, grid.dimension)[outside.reshape(-1, grid.dimension).any(axis=1)][0]
        raise ParameterError(
            f"{what} at {_show(bad)} is outside of the box, which goes from 0 to {_show(lengths)}"
        )


def require_before_layer(
    position: Array | np.ndarray,
    grid: Grid,
    layer: ConvolutionalPML | None,
    what: str,
    *,
    at_seam: bool = False,
) -> None:
    """**Errors:** `ParameterError` for a position within an absorbing layer, where waves die out.

    - `at_seam`: as of `ConvolutionalPML.sides_of`.
    """
    x, lengths = concrete_value(position), concrete_value(grid.space.lengths)
    if layer is None or x is None or lengths is None:
        return
    for side in layer.sides_of(grid, at_seam):
        axis = AXES.index(side[0])
        depth = lengths[axis] - x[axis] if side.endswith("high") else x[axis]
        width = layer.cells * lengths[axis] / grid.shape[axis]
        if depth < width * (1 - 1e-6):
            raise ParameterError(
                f"{what} at {_show(x)} is within the absorbing layer at {side}, which is {layer.cells} cells "
                f"or {width:.4g} wide: waves die out there. Put it before the layer, or give a larger box"
            )


def check_waves(
    sources: Sequence, grid: Grid, speeds: tuple[float, float] | None, few: float
) -> None:
    """Compare the waves of sources with the cells of a grid; warns where they are few.

    - `speeds`: of waves where they are slowest and where they are fastest; None where a trace hides them.
    - `few`: cells in a wavelength below which waves are not resolved.

    **Errors:** `ParameterError` for a frequency of which no wave exists on the grid.
    """
    lengths = concrete_value(grid.space.lengths)
    frequencies = [_highest_frequency(source) for source in sources]
    known = [f for f in frequencies if f is not None and f > 0]
    if speeds is None or lengths is None or not known:
        return
    # Axes of a few cells are there for the form.
    sizes = [float(x) / n for x, n in zip(lengths, grid.shape, strict=True) if n >= 4]
    cells = [2 * np.pi * c / (max(known) * max(sizes)) for c in speeds] if sizes else [few, few]
    if cells[1] < _FEWEST:
        raise ParameterError(
            f"waves of ω = {max(known):.4g} are {cells[1]:.2g} cells long at most, and a grid carries none "
            f"below {_FEWEST:g}: they stay at their source. Frequencies are in radians / time (2πf); or take "
            "smaller cells"
        )
    if cells[0] < few:
        warn(
            f"waves of ω = {max(known):.4g} are {cells[0]:.2g} cells long where they are slowest: below "
            f"{few:g} they run at a wrong speed, or not at all. Take smaller cells or a lower frequency, in "
            "radians / time (2πf)"
        )


def warn_of_jumps(sources: Sequence, t: Array) -> None:
    """Warn of pulses that are under way at the time `t` of the start."""
    for source in sources:
        waveform = getattr(source, "waveform", None)
        share = waveform.share_at_start(t) if isinstance(waveform, AbstractWaveform) else None
        if share is not None and share > 0.02:
            warn(
                f"the {type(waveform).__name__} of a {type(source).__name__} begins at {share:.0%} of its "
                "peak: a jump, which sends waves of all frequencies. Take a center 5 widths or more after the "
                "start"
            )


def _highest_frequency(source: object) -> float | None:
    waveform = getattr(source, "waveform", None)
    return waveform.highest_frequency() if isinstance(waveform, AbstractWaveform) else None


def _show(position: np.ndarray) -> list[float]:
    return [round(float(c), 6) for c in np.atleast_1d(position)]
