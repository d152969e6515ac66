"""Parameters from data: certified regressions, hares and lynx, a flow from probes."""

from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.systems import PELTS_RATES, TRUE_VISCOSITY, fit_flow, fit_pelts, pelts, probe_flow

from .._case import Case, Published
from ._strd import digits_of, shipped_strd


def misra1a() -> dict[str, Any]:
    """y = b₁ (1 − e^(−b₂ x)) to 14 points from both of NIST's starts: correct digits, the worse of two."""
    return digits_of(shipped_strd("Misra1a"), _saturation, (0, 1))


def harder_regressions() -> dict[str, Any]:
    """BoxBOD and MGH09 from both starts, MGH10 from the second: correct digits of the values."""
    regressions = {
        "BoxBOD": (_saturation, (0, 1)),
        "MGH09": (_kowalik_osborne, (0, 1)),
        "MGH10": (_meyer, (1,)),
    }
    return {
        name: digits_of(shipped_strd(name), model, starts)["digits of values"]
        for name, (model, starts) in regressions.items()
    }


def _saturation(b: ArrayLike, x: ArrayLike) -> Any:
    return b[0] * (1 - jnp.exp(-b[1] * x))


def _kowalik_osborne(b: ArrayLike, x: ArrayLike) -> Any:
    return b[0] * (x * x + x * b[1]) / (x * x + x * b[2] + b[3])


def _meyer(b: ArrayLike, x: ArrayLike) -> Any:
    return b[0] * jnp.exp(b[1] / (x + b[2]))


def rates_of_hare_and_lynx() -> dict[str, Any]:
    """Lotka and Volterra's equations through the simulation, to the logarithms of 21 years of pelts;
    both numbers of 1900 are free."""
    values = fit_pelts(pelts(), progress=False).check().values
    return {name: values[name] for name in ("growth", "predation", "death", "conversion")}


def viscosity_from_probes() -> dict[str, Any]:
    """Viscosity of a driven flow from ten probes with noise 0.02, on half the resolution of the truth."""
    found = fit_flow(probe_flow(250, noise=0.02), progress=False)
    return {"viscosity": found.value[0]}


CASES = (
    Case(
        "misra1a",
        misra1a,
        (
            Published("digits of values", 6, 0, "at least"),
            Published("digits of errors", 4, 0, "at least"),
            Published("digits of Σr²", 6, 0, "at least"),
        ),
        "NIST StRD, Misra1a",
    ),
    Case(
        "strd",
        harder_regressions,
        tuple(Published(name, 6, 0, "at least") for name in ("BoxBOD", "MGH09", "MGH10")),
        "NIST StRD, higher level of difficulty",
    ),
    Case(
        "hare-and-lynx",
        rates_of_hare_and_lynx,
        tuple(
            Published(name, rate, 0.05, "relative")
            for name, rate in zip(
                ("growth", "predation", "death", "conversion"), PELTS_RATES, strict=True
            )
        ),
        "Howard 2009; Carpenter 2018",
    ),
    Case(
        "probed-flow",
        viscosity_from_probes,
        (Published("viscosity", TRUE_VISCOSITY, 0.01, "relative"),),
        "the viscosity that the truth was computed with",
        slow=True,
    ),
)
