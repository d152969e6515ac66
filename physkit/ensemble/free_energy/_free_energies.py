"""MBAR: free energies of several states, and what follows from their weights."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from physkit.core import ParameterError, ShapeError, explain_call
from physkit.observe import Estimate

from ..statistics._edges import as_edges
from ._pymbar import open_pymbar


class Profile(NamedTuple):
    """A free energy along a variable.

    - `centers`: of the bins, `[bins]`. `free_energy`: energy, 0 where it is lowest; infinite in empty bins.
    - `error`: its standard error. `counts`: how many frames fell into each bin.
    """

    centers: np.ndarray
    free_energy: np.ndarray
    error: np.ndarray
    counts: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FreeEnergies:
    """Free energies of K states by MBAR: what `free_energies` and `wham` return.

    - `values`, `errors`: F_k − F_0 and its standard error, `[states]`; energy where all states have one
      temperature, else in units of each state's own: F_k/(k_B T_k) − F_0/(k_B T_0).
    - `differences`, `difference_errors`: of state b less state a, `[a, b]`, in the same unit.
    - `overlap`: `[states states]`; neighbors of which it is below 0.03 are not connected.
    - `rows`: `[states]`, which frames of each state were taken as independent.
    """

    values: np.ndarray
    errors: np.ndarray
    differences: np.ndarray
    difference_errors: np.ndarray
    overlap: np.ndarray
    rows: tuple[np.ndarray, ...]
    temperature: np.ndarray
    _mbar: Any
    _shape: tuple[int, int]
    _energies: np.ndarray | None = None  # of each frame, where all states have one energy

    def __repr__(self) -> str:
        pairs = zip(self.values, self.errors, strict=True)
        return f"FreeEnergies({', '.join(f'{v:.4g} ± {e:.2g}' for v, e in pairs)})"

    def mean(
        self, x: ArrayLike, *, target: ArrayLike | None = None, temperature: float | None = None
    ) -> Estimate:
        """The mean of a quantity in the state `target`, from the frames of all states.

        **Arguments:**

        - `x`: its values in all frames, `[states frames]`.
        - `target`: the energy of each frame in the state that is asked for, `[states frames]`: 0 without a
          bias, where the energies given were those of biases alone. May be left out where states differ in
          temperature alone.
        - `temperature`: k_B T of that state; that of the first if left out.

        **Errors:** `ParameterError` where `target` is missing, or for NaNs; `ShapeError` for other shapes.
        """
        values = self._flat(x, "x")
        mean, error = self._expectations(values[None], target, temperature)
        return Estimate(mean[0], error[0])

    def profile(
        self,
        x: ArrayLike,
        edges: ArrayLike,
        *,
        target: ArrayLike | None = None,
        temperature: float | None = None,
    ) -> Profile:
        """The free energy along a variable, −k_B T ln p(x), from the frames of all states.

        **Arguments:** `x`: the variable in all frames, `[states frames]`. `edges`: of the bins. Others as of
        `mean`.

        **Errors:** those of `mean`; `ParameterError` for edges that do not rise.

        **Notes:** the error is that of ln p of each bin.
        """
        edges = as_edges(edges)
        values = self._flat(x, "x")
        is_inside = (values >= edges[:-1, None]) & (values < edges[1:, None])
        counts = is_inside.sum(axis=1)
        filled = counts > 0
        free_energy, error = np.full(len(counts), np.inf), np.full(len(counts), np.inf)
        if np.any(filled):
            p, dp = self._expectations(is_inside[filled].astype(float), target, temperature)
            kT = self.temperature[0] if temperature is None else temperature
            free_energy[filled] = -kT * np.log(p / np.diff(edges)[filled])
            free_energy[filled] -= free_energy[filled].min()
            error[filled] = kT * dp / p
        return Profile(0.5 * (edges[1:] + edges[:-1]), free_energy, error, counts)

    def _expectations(
        self, values: np.ndarray, target: ArrayLike | None, temperature: float | None
    ) -> tuple[np.ndarray, np.ndarray]:
        target = self._energies if target is None else target
        if target is None:
            raise ParameterError(
                "say in which state: target=0.0 is that without a bias, where the energies given were those of "
                "biases alone; else target= is the energy of each frame in the state, [states frames]"
            )
        kT = float(self.temperature[0] if temperature is None else temperature)
        if not 0 < kT < np.inf:
            raise ParameterError(f"temperature must be positive and finite; got {temperature}")
        target = np.full(self._shape, target) if np.ndim(target) == 0 else target
        reduced = self._flat(target, "target") / kT
        # Logarithms of indicators that are 0, which pymbar takes on the way.
        with open_pymbar(), np.errstate(divide="ignore"):
            found = self._mbar.compute_multiple_expectations(values, reduced)
        return np.asarray(found["mu"]), np.asarray(found["sigma"])

    def _flat(self, x: ArrayLike, name: str) -> np.ndarray:
        """Values of the frames that were taken, state after state."""
        x = np.asarray(x, float)
        if x.shape != self._shape:
            raise ShapeError(f"{name} must be [states frames], {self._shape}; got {x.shape}")
        # A NaN lies in no bin: the frames of a member that failed would be left out in silence.
        if np.any(np.isnan(x)):
            raise ParameterError(
                f"{name} is NaN in {np.isnan(x).sum()} frames: leave out the members that failed"
            )
        return np.concatenate([x[k, rows] for k, rows in enumerate(self.rows)])


@explain_call
def free_energies(
    energies: ArrayLike, temperature: ArrayLike, *, subsample: bool = True
) -> FreeEnergies:
    """Free energies of several states from simulations of each, by MBAR.

        F_k = −k_B T ln Σ_n e^{−U_k(x_n)/k_B T} / Σ_j N_j e^{(F_j − U_j(x_n))/k_B T}

        sweep((sim, state), steps, over=SweepAxis(where, values))   with   u=EnergiesAt(where, values)
        free_energies(ensemble["u"], temperature).values

    **Arguments:**

    - `energies`: `[states frames states]`: of each frame of each simulation, the energy at every state; only
      differences between states count. `[states frames]` where states differ in temperature alone.
    - `temperature`: k_B T; one, or `[states]`.
    - `subsample`: take only as many frames as are independent, by the statistical inefficiency of the energy
      differences between neighbors; without it errors of correlated frames are too small.

    **Errors:** `ShapeError` for other shapes; `ParameterError` for energies that are not finite, and for
    temperatures that are not positive and finite; `MissingExtraError` without pymbar.

    **Notes:** leave out the frames before equilibrium.

    **Reference:** Shirts & Chodera, J. Chem. Phys. 129, 124105 (2008); Chodera et al., J. Chem. Theory Comput.
    3, 26 (2007), for the statistical inefficiency.
    """
    energies = np.asarray(energies, float)
    common = energies if energies.ndim == 2 else None
    if common is not None and np.size(temperature) == 1:
        raise ShapeError(
            f"energies [states frames] are those of states that differ in temperature: give one for each of "
            f"{energies.shape[0]} states. States that differ in energy need [states frames states]; got "
            f"{energies.shape}"
        )
    if common is not None:
        energies = np.repeat(energies[:, :, None], energies.shape[0], axis=2)
    if energies.ndim != 3 or energies.shape[0] != energies.shape[2] or energies.shape[0] < 2:
        raise ShapeError(
            f"energies must be [states frames states] of two states and more; got {energies.shape}"
        )
    if energies.shape[1] == 0:
        raise ShapeError(f"energies of no frames; got {energies.shape}")
    if not np.all(np.isfinite(energies)):
        raise ParameterError("energies are not all finite: leave out the members that failed")
    count = energies.shape[0]
    kT = np.asarray(temperature, float)
    if kT.shape not in ((), (1,), (count,)):
        raise ShapeError(f"temperature is one, or one for each of {count} states; got {kT.shape}")
    kT = np.broadcast_to(kT, (count,))
    if not np.all((kT > 0) & (kT < np.inf)):
        raise ParameterError(f"temperatures must be positive and finite; got {temperature}")
    reduced = energies / kT
    with open_pymbar() as pymbar:
        strides = [_inefficiency(pymbar, reduced[k], k) if subsample else 1 for k in range(count)]
        rows = tuple(np.arange(0, energies.shape[1], stride) for stride in strides)
        columns = np.concatenate([reduced[k, rows[k]] for k in range(count)]).T
        mbar = pymbar.MBAR(columns, np.array([len(r) for r in rows]))
        found = mbar.compute_free_energy_differences()
        overlap = np.asarray(mbar.compute_overlap()["matrix"])
    scale = kT[0] if np.all(kT == kT[0]) else 1.0
    differences = scale * np.asarray(found["Delta_f"])
    errors = scale * np.asarray(found["dDelta_f"])
    return FreeEnergies(
        differences[0], errors[0], differences, errors, overlap, rows, kT, mbar, energies.shape[:2],
        common,
    )  # fmt: skip


def _inefficiency(pymbar: Any, reduced: np.ndarray, k: int) -> int:
    """Frames of state k from one independent one to the next."""
    neighbor = k + 1 if k + 1 < reduced.shape[1] else k - 1
    series = reduced[:, neighbor] - reduced[:, k]
    if np.ptp(series) == 0:
        return 1
    return max(1, int(np.ceil(pymbar.timeseries.statistical_inefficiency(series))))
