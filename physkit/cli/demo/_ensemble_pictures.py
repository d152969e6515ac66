"""Pictures of the chapter on ensembles."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from physkit import plot
from physkit.systems import double_well_passage, lennard_jones_equation_of_state

from ._ensemble_results import GRAMS_PER_CM3, KELVIN, MEGAPASCAL, EscapeRates, FluidPressures


def draw_escape(found: EscapeRates, path: Path) -> None:
    """Rates over the inverse temperature, on the exact curve; Kramers' law beside it."""
    inverse = 1 / found.temperature
    fine = 1 / np.linspace(inverse.min(), inverse.max(), 60)
    exact = [1 / double_well_passage(t) for t in fine]
    # Kramers' law √(U″(min) |U″(top)|) / 2π · e^(−ΔU/T), for U = x⁴/4 − x²/2: U″ = 2 and −1, ΔU = 1/4.
    kramers = np.sqrt(2) / (2 * np.pi) * np.exp(-0.25 / fine)
    with plot.style():
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        ax = figure.add_subplot()
        plot.apply_style(ax)
        ax.plot(0.25 / fine, exact, color=plot.PALETTE[0], label="exact, by quadrature")
        ax.plot(0.25 / fine, kramers, color="#999999", lw=1.2, ls=(0, (5, 3)), label="Kramers 1940")
        ax.errorbar(
            0.25 * inverse, found.rate, found.error, fmt="o", ms=5, capsize=3, mec="white", mew=0.6,
            color=plot.PALETTE[1], label="sweep, bootstrap error bars",
        )  # fmt: skip
        ax.set_yscale("log")
        ax.set(xlabel="barrier / $k_B T$", ylabel="escape rate")
        ax.legend(frameon=False)
        figure.savefig(path, dpi=160)


def draw_map(boxes: FluidPressures, path: Path) -> None:
    """Pressure over temperature and density, and isobars of the published equation of state."""
    t = np.linspace(boxes.temperature.min(), boxes.temperature.max(), 60)
    rho = np.linspace(boxes.density.min(), boxes.density.max(), 60)
    known = np.asarray(lennard_jones_equation_of_state(*np.meshgrid(rho, t)).pressure).T

    with plot.style():
        figure = Figure(figsize=(6.6, 4.8), layout="constrained")
        ax = figure.add_subplot()
        plot.heat_map(
            boxes.temperature * KELVIN,
            boxes.density * GRAMS_PER_CM3,
            boxes.pressure * MEGAPASCAL,
            error=boxes.error * MEGAPASCAL,
            limits=(0.0, float(boxes.published.max()) * MEGAPASCAL),
            cmap="viridis",
            ax=ax,
            x_label="temperature / K",
            y_label="density / (g/cm³)",
            label="pressure / MPa",
        )
        levels = [10, 20, 50, 100, 200, 300]
        lines = ax.contour(
            t * KELVIN,
            rho * GRAMS_PER_CM3,
            known * MEGAPASCAL,
            levels,
            colors="white",
            linewidths=1.1,
        )
        ax.clabel(lines, fmt="%g MPa", fontsize=8)
        ax.set_title(
            "cells: boxes of 108 atoms; lines: Johnson, Zollweg & Gubbins 1993", fontsize=9.5
        )
        figure.savefig(path, dpi=160)


def draw_isotherms(boxes: FluidPressures, path: Path) -> None:
    """Some isotherms with error bars on the published equation of state, and what is left."""
    temperatures = np.unique(boxes.temperature)
    # Up to four isotherms, from the coldest to the hottest.
    some = temperatures[:: max(1, (len(temperatures) - 1) // 3)][:4]
    fine = np.linspace(0.02, boxes.density.max() * 1.03, 100)
    with plot.style():
        figure = Figure(figsize=(6.6, 5.4), layout="constrained")
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        for ax in (top, bottom):
            plot.apply_style(ax)
        bottom.axhline(0, color="#B8B8B8", lw=0.8)
        for color, t in zip(plot.PALETTE, some[::-1], strict=False):
            is_on_isotherm = boxes.temperature == t
            x = boxes.density[is_on_isotherm] * GRAMS_PER_CM3
            curve = lennard_jones_equation_of_state(fine, t).pressure
            top.plot(fine * GRAMS_PER_CM3, np.asarray(curve) * MEGAPASCAL, color=color, lw=1.3)
            bars = {"fmt": "o", "ms": 4, "color": color, "mec": "white", "mew": 0.4, "capsize": 2}
            error = boxes.error[is_on_isotherm] * MEGAPASCAL
            label = f"{t * KELVIN:.0f} K"
            top.errorbar(x, boxes.pressure[is_on_isotherm] * MEGAPASCAL, error, label=label, **bars)
            difference = (boxes.pressure - boxes.published)[is_on_isotherm] * MEGAPASCAL
            bottom.errorbar(x, difference, error, **bars)
        top.plot([], [], color="#333333", lw=1.3, label="Johnson, Zollweg & Gubbins 1993")
        top.set_ylabel("pressure / MPa")
        top.legend(frameon=False)
        bottom.set(xlabel="density / (g/cm³)", ylabel="difference / MPa")
        figure.savefig(path, dpi=160)
