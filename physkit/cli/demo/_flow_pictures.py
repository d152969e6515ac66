"""Pictures of the chapter on the flow."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from physkit import plot
from physkit.systems import FlowFit, ProbedFlow

_SHOWN = (0, 3, 6)  # probes whose velocities are drawn


def draw_vorticity(flow: ProbedFlow, path: Path) -> None:
    """Where the flow began, where it ended, and where the probes are."""
    with plot.style():
        figure = Figure(figsize=(9.6, 4.4), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        top = float(np.max(np.abs(np.asarray(flow.end.data))))
        for ax, state, when in zip(axes, (flow.begin, flow.end), (0.0, flow.time[-1]), strict=True):
            is_last = state is flow.end
            plot.field(
                state, ax=ax, limits=(-top, top), cmap="RdBu_r", bar=is_last, label="vorticity"
            )
            ax.plot(*flow.place.T, "o", ms=7, mfc="white", mec="#222222", mew=1.2)
            for k in _SHOWN:
                ax.annotate(
                    str(k), flow.place[k], xytext=(6, 5), textcoords="offset points", weight="bold"
                )
            ax.set_title(f"t = {when:g}")
        axes[1].set_ylabel("")
        figure.savefig(path, dpi=160)


def draw_probes(flow: ProbedFlow, found: FlowFit, path: Path) -> None:
    """What three probes saw, beside the first guess and the fit."""
    with plot.style():
        figure = Figure(figsize=(9.6, 5.6), layout="constrained")
        axes = figure.subplots(len(_SHOWN), 2, sharex=True, squeeze=False)
        for row, k in zip(axes, _SHOWN, strict=True):
            for axis, ax in enumerate(row):
                plot.apply_style(ax)
                ax.plot(
                    flow.time,
                    flow.measured[:, k, axis],
                    ".",
                    ms=4,
                    color="#777777",
                    label="measured",
                )
                ax.plot(
                    flow.time,
                    found.before[:, k, axis],
                    "--",
                    lw=1.2,
                    color=plot.PALETTE[1],
                    label="guess",
                )
                ax.plot(
                    flow.time, found.after[:, k, axis], lw=1.6, color=plot.PALETTE[0], label="fit"
                )
                ax.set_ylabel(f"${'uv'[axis]}$ at probe {k}")
        for ax in axes[-1]:
            ax.set_xlabel("time")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
        figure.savefig(path, dpi=160)
