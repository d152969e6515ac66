"""Chapter of the demo: a flow from ten probes."""

from pathlib import Path

import numpy as np

from physkit.systems import FlowFit, ProbedFlow, fit_flow, probe_flow

from ..common._csv import write_table
from ..common._report import Report
from ._flow_pictures import draw_probes, draw_vorticity

MAX_STANDARD_ERRORS = 4.0  # that a fitted value may be off


def run(folder: Path, quick: bool, report: Report) -> None:
    """Viscosity and forcing of a driven flow from noisy velocities at ten places."""
    flow = probe_flow(100 if quick else 250)
    found = fit_flow(flow, progress=not report.quiet)
    _print(flow, found, report)
    draw_vorticity(flow, folder / "vorticity.png")
    draw_probes(flow, found, folder / "probes.png")
    for name in ("vorticity.png", "probes.png"):
        report.file(folder / name)
    report.file(_write(flow, found, folder / "probes.csv"))


def _print(flow: ProbedFlow, found: FlowFit, report: Report) -> None:
    report.result("")
    rows = zip(("viscosity", "forcing"), found.value, found.error, found.truth, strict=True)
    report.table(
        ("flow", "found", "± std. error", "truth", "difference"),
        [
            (
                name,
                f"{value:.5f}",
                f"{error:.5f}",
                f"{truth:.5f}",
                f"{100 * (value / truth - 1):+.2f} %",
            )
            for name, value, error, truth in rows
        ],
    )
    errors_off = np.abs(found.value - found.truth) / found.error
    verdict = "both within" if np.all(errors_off < MAX_STANDARD_ERRORS) else "NOT both within"
    # About 1 where the model explains all but the noise.
    residual = np.sqrt(np.mean((found.after - flow.measured) ** 2)) / flow.noise
    report.result(
        f"{verdict} {MAX_STANDARD_ERRORS:.0f} standard errors after {found.fit.steps} steps; what is left is "
        f"{residual:.2f} times the noise"
    )


def _write(flow: ProbedFlow, found: FlowFit, path: Path) -> Path:
    about = "velocity at ten probes: measured (with noise) and simulated with the values found"
    columns = {"time": flow.time}
    for k in range(len(flow.place)):
        for axis, name in enumerate("uv"):
            columns[f"{name}{k} measured"] = flow.measured[:, k, axis]
            columns[f"{name}{k} fitted"] = found.after[:, k, axis]
    return write_table(path, about, columns)
