"""Thermal averages of spins from recorded energies and magnetizations."""

from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from physkit.core import ParameterError, ShapeError, explain_call

from ._jackknife import Jackknife, jackknife


class SpinAverages(NamedTuple):
    """Averages per site, each with `value` and `error`.

    - `energy`: u = ⟨E⟩/N. `heat_capacity`: c = (⟨E²⟩ − ⟨E⟩²)/(N T²), in k_B.
    - `magnetization`: ⟨|m|⟩. `susceptibility`: χ = N (⟨m²⟩ − ⟨|m|⟩²)/T.
    - `binder_cumulant`: 1 − ⟨m⁴⟩/(3 ⟨m²⟩²): 2/3 of an ordered lattice, 0 of a large disordered one; its curves
      over T for different sizes cross at T_c.
    """

    energy: Jackknife
    heat_capacity: Jackknife
    magnetization: Jackknife
    susceptibility: Jackknife
    binder_cumulant: Jackknife


@explain_call
def spin_averages(
    energy: ArrayLike,
    magnetization: ArrayLike,
    temperature: ArrayLike,
    *,
    num_sites: int,
    blocks: int = 32,
) -> SpinAverages:
    """What a series of energies and magnetizations says about a temperature, with errors by the jackknife.

    **Arguments:**

    - `energy`: `[t]`, of the whole lattice (`SpinEnergy`). `magnetization`: `[t]`, per site (`Magnetization`).
    - `temperature`: k_B T, energy. `num_sites`: N.
    - `blocks`: of `jackknife`.

    **Errors:** `ShapeError` for series of different lengths, `ParameterError` for a temperature that is not
    positive; those of `jackknife`.

    **Good values:** series without their beginning: some correlation times for the lattice to forget its start.

    **Reference:** Binder, Z. Phys. B 43, 119 (1981), for the cumulant.
    """
    u, m = np.asarray(energy, np.float64) / num_sites, np.abs(np.asarray(magnetization, np.float64))
    if u.ndim != 1 or u.shape != m.shape:
        raise ShapeError(f"energy and magnetization are [t] each; got {u.shape} and {m.shape}")
    T = float(np.asarray(temperature))
    if not T > 0:
        raise ParameterError(f"temperature must be positive; got {T:g}")
    u0 = u.mean()  # a variance of numbers near zero loses no digits

    def averages(*means: Any) -> Any:
        du, du2, m1, m2, m4 = means
        heat_capacity = num_sites * (du2 - du**2) / T**2
        susceptibility = num_sites * (m2 - m1**2) / T
        return np.stack([u0 + du, heat_capacity, m1, susceptibility, 1 - m4 / (3 * m2**2)])

    found = jackknife(averages, u - u0, (u - u0) ** 2, m, m**2, m**4, blocks=blocks)
    return SpinAverages(*(Jackknife(v, e) for v, e in zip(found.value, found.error, strict=True)))
