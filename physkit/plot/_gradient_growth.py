"""The picture of how gradients grow with the window."""

import numpy as np

from physkit.core import ParameterError, PyTree, explain_call

from ._style import FAINT, INK, PALETTE, axes, axis_label, legend
from ._types import Axes


@explain_call
def gradient_growth(growth: PyTree, *, ax: Axes | None = None, time_unit: str = "") -> Axes:
    """Length of a derivative against the window, what it grows like, and the window that is safe.

    **Arguments:**

    - `growth`: the `GradientGrowth` that `gradient_growth` returns.
    - `ax`: axes to draw on; a new figure if left out.
    - `time_unit`: of the window.

    **Returns:** the `Axes`.

    **Errors:** `ParameterError` for something else.
    """
    if not hasattr(growth, "safe_time"):
        raise ParameterError(
            f"this draws what gradient_growth returns; got {type(growth).__name__}"
        )
    ax = axes(ax)
    t, log10 = np.asarray(growth.times), np.asarray(growth.growth) / np.log(10)
    ax.plot(t, log10, color=PALETTE[0], linewidth=0.7, alpha=0.35)
    ax.plot(t, log10.mean(axis=1), color=PALETTE[0], label="derivative of the state")
    late = slice(len(t) // 4, None)  # without the transient, as the measurement has it
    if growth.chaotic:
        slope, shape = growth.exponent / np.log(10), t
        name = f"exp(λ t), λ = {growth.exponent:.3g} ± {growth.error:.1g}"
    else:
        slope, shape, name = growth.power, np.log10(t), f"t^{growth.power:.2f}"
    # λ or the power is measured; the offset is the mean of what is left.
    middle = np.mean(log10[late].mean(axis=1) - slope * shape[late])
    ax.plot(t[late], middle + slope * shape[late], color=INK, ls=(0, (5, 3)), lw=1.1, label=name)
    if growth.safe_time < t[-1]:
        ax.axvspan(0, growth.safe_time, color=PALETTE[2], alpha=0.12, lw=0)
        ax.axhline(np.log10(growth.factor), color=FAINT, lw=0.8, zorder=1)
        ax.plot([], [], color=PALETTE[2], alpha=0.3, lw=6, label=f"safe: {growth.safe_time:.3g}")
    ax.set_xlabel(axis_label("window", time_unit))
    ax.set_ylabel("growth, powers of ten")
    ax.margins(x=0)
    legend(ax)
    return ax
