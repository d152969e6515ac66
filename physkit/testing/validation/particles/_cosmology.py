"""Structure in an expanding universe."""

from typing import Any

import numpy as np

from physkit.simulate import simulate
from physkit.systems import zeldovich_pancake, zeldovich_solution

from .._case import Case, Published


def collapse_of_a_pancake() -> dict[str, Any]:
    """Sheets from a = 0.1 to 0.98, just before they cross: positions and momenta beside the exact ones."""
    simulation, sheets = zeldovich_pancake(0.1, 0.98)
    end = simulate(simulation, sheets, 200).state
    x, p = zeldovich_solution(0.98)
    # At a = 0 no sheet is displaced: x − q is the exact displacement.
    q, _ = zeldovich_solution(0.0)
    error = np.asarray(end.unwrapped)[:, 0] - x
    error -= np.round(error)  # in a periodic box of length 1
    return {
        "displacement": np.max(np.abs(error)) / np.max(np.abs(x - q)),
        "momentum": np.max(np.abs(np.asarray(end.velocity)[:, 0] - p)) / np.max(np.abs(p)),
    }


def linear_growth() -> dict[str, Any]:
    """A small wave from a = 0.1 to 1: its contrast over the ten times of linear theory."""
    # The contrast is a/a_c, 10⁻⁴ at the end: nonlinear terms are far below the tolerance.
    simulation, sheets = zeldovich_pancake(0.1, 1.0, crossing=1e4, count=256, cells=64)
    wave = np.abs(np.asarray(simulate(simulation, sheets, 200).frames["wave"]))
    return {"growth / 10": wave[-1] / wave[0] / 10}


CASES = (
    Case(
        "zeldovich-pancake",
        collapse_of_a_pancake,
        (
            Published("displacement", 0.0, 0.01, "at most"),
            Published("momentum", 0.0, 0.01, "at most"),
        ),
        "Zel'dovich 1970",
    ),
    Case(
        "linear-growth",
        linear_growth,
        (Published("growth / 10", 1.0, 0.005),),
        "Peebles 1980, section 11",
    ),
)
