"""What sampling a posterior returns, and how it prints."""

import dataclasses
from functools import cached_property
from pathlib import Path

import jax
import numpy as np

from physkit.core import ConvergenceError, ParameterError, PyTree, as_device_array
from physkit.ensemble import Ensemble, SweepAxis
from physkit.fit import element_labels, read_samples, write_samples
from physkit.simulate import Simulation
from physkit.storage import to_path

from ._diagnostics import bulk_sample_size, monte_carlo_error, r_hat, tail_sample_size
from ._posterior import Posterior

_MAX_R_HAT = 1.01
_MIN_SAMPLES_PER_CHAIN = 100
_MAX_ROWS = 16


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PosteriorSamples:
    """Draws from a posterior by Markov chains; prints as a table.

    - `values`: arrays by name, `[chains draws *shape]`. `labels`: a name for every number.
    - `table`: all numbers, `[chains draws v]`, in the order of the labels.
    - `log_density`, `energy`, `acceptance`, `num_steps`, `is_divergent`: `[chains draws]`, of the transitions.
    - `step_size`: `[chains]`, after the warm-up.
    - `ensemble`: the sweep's members, the warm-up among their frames: `ensemble["z"]`.
    - `posterior`: what was sampled; it and `ensemble` are None of samples that were loaded.
    - `num_chains`: how many were asked for. `is_proper`: whether every number has a prior or bounds.
    """

    posterior: Posterior | None
    ensemble: Ensemble | None
    values: dict[str, np.ndarray]
    labels: tuple[str, ...]
    table: np.ndarray
    log_density: np.ndarray
    energy: np.ndarray
    acceptance: np.ndarray
    num_steps: np.ndarray
    is_divergent: np.ndarray
    step_size: np.ndarray
    num_chains: int
    max_steps: int
    is_proper: bool

    @cached_property
    def r_hat(self) -> np.ndarray:
        """Rank-normalized split R̂, `[v]`."""
        return r_hat(self.table)

    @cached_property
    def bulk_sample_size(self) -> np.ndarray:
        """Effective sample size of means, `[v]`."""
        return bulk_sample_size(self.table)

    @cached_property
    def tail_sample_size(self) -> np.ndarray:
        """Effective sample size of the 5 % and 95 % quantiles, `[v]`."""
        return tail_sample_size(self.table)

    @cached_property
    def monte_carlo_error(self) -> np.ndarray:
        """Standard error of the means, `[v]`."""
        return monte_carlo_error(self.table)

    @property
    def num_divergent(self) -> int:
        """How many transitions diverged."""
        return int(np.sum(self.is_divergent))

    @property
    def mean(self) -> np.ndarray:
        """Posterior means, `[v]`."""
        return np.mean(self.table, axis=(0, 1))

    @property
    def std(self) -> np.ndarray:
        """Posterior standard deviations, `[v]`."""
        return np.std(self.table, axis=(0, 1))

    def model(self, chain: int, draw: int) -> PyTree:
        """The model with the numbers of one draw.

        **Errors:** `ParameterError` of samples that were loaded, without the model.
        """
        values = {name: x[chain, draw] for name, x in self.values.items()}
        posterior = self._require_posterior()
        return posterior.problem.selection.put(posterior.model, values)

    def some_values(self, count: int) -> dict[str, np.ndarray]:
        """Values of `count` draws of all chains, evenly spaced: `[count *shape]` by name, for predictions.

        **Errors:** `ParameterError` for more than there are.
        """
        total = self.table.shape[0] * self.table.shape[1]
        if not 1 <= count <= total:
            raise ParameterError(f"there are {total} draws; asked for {count}")
        rows = np.linspace(0, total - 1, count).round().astype(int)
        return {name: x.reshape(total, *x.shape[2:])[rows] for name, x in self.values.items()}

    def axis(self, count: int) -> SweepAxis:
        """A sweep axis of `count` draws: `sweep(model, steps, over=samples.axis(100))` is the posterior
        predictive, whose bands `plot.fan` draws. The model is (simulation, state), as the posterior's is.

        **Errors:** `ParameterError` for more than there are, a posterior of another kind of model, or samples
        that were loaded: for those make the axis from `some_values`.
        """
        posterior = self._require_posterior()
        model = posterior.model
        if not (isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], Simulation)):
            raise ParameterError(
                "the posterior's model is not (simulation, state), which a sweep takes: point at the numbers "
                "of yours, SweepAxis(where, samples.some_values(count))"
            )
        values, selection = self.some_values(count), posterior.problem.selection
        return SweepAxis(selection, values if len(values) > 1 else next(iter(values.values())))

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What to know before believing the numbers."""
        remarks = []
        chains, draws = self.table.shape[:2]
        if chains < self.num_chains:
            remarks.append(
                f"{self.num_chains - chains} of {self.num_chains} chains are not there yet, or failed: call "
                "again with the same to= to go on"
            )
        if self.num_divergent:
            remarks.append(
                f"{self.num_divergent} of {chains * draws} transitions diverged: where the posterior curves "
                "sharply, draws are missing, and means are biased. Raise target_acceptance to 0.95 or 0.99, "
                "or change parameters: of a spread and what it scales, sample the latter in units of the former"
            )
        at_limit = int(np.sum(self.num_steps >= self.max_steps)) if self.max_steps else 0
        if at_limit:
            remarks.append(
                f"{at_limit} transitions reached the longest trajectory, {self.max_steps} steps: slow, not "
                "wrong. dense_metric=True helps where parameters are correlated"
            )
        bad = [
            f"{label} {value:.3f}"
            for label, value in zip(self.labels, self.r_hat, strict=True)
            if not value < _MAX_R_HAT
        ]
        if chains < 2:
            remarks.append("one chain cannot disagree with another: sample four or more")
        if bad:
            remarks.append(
                f"chains disagree, R-hat above {_MAX_R_HAT}: {', '.join(bad[:4])}"
                f"{' …' if len(bad) > 4 else ''}. More warm-up and draws; or several modes"
            )
        smallest = np.minimum(self.bulk_sample_size, self.tail_sample_size)
        few = [
            f"{label} {value:.0f}"
            for label, value in zip(self.labels, smallest, strict=True)
            if not value >= _MIN_SAMPLES_PER_CHAIN * chains
        ]
        if few:
            # Trajectories of one length may come back to where they began.
            advice = "" if self.max_steps else "; or another number of steps, or NUTS()"
            remarks.append(
                f"few effective samples, less than 100 a chain: {', '.join(few[:4])}"
                f"{' …' if len(few) > 4 else ''}. More draws{advice}"
            )
        if not self.is_proper:
            remarks.append(
                "a parameter has neither prior nor bounds: the data must determine it alone"
            )
        return tuple(remarks)

    def check(self) -> "PosteriorSamples":
        """These samples.

        **Errors:** `ConvergenceError` where transitions diverged or R̂ is 1.01 or more.
        """
        if self.num_divergent or not np.all(self.r_hat < _MAX_R_HAT):
            raise ConvergenceError("the chains are not to be trusted: " + "; ".join(self.remarks))
        return self

    def save(self, folder: str | Path) -> None:
        """Write all but the model to `posterior.nc` in a folder, of which `physkit report` makes a chapter.

        **Errors:** `FileError`.
        """
        of_numbers = {
            name: getattr(self, name) for name in ("r_hat", "bulk_sample_size", "tail_sample_size")
        }
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        write_samples(to_path(folder), fields, of_numbers, list(self.remarks))

    @classmethod
    def load(cls, folder: str | Path) -> "PosteriorSamples":
        """The samples in a folder, without their posterior: `some_values` are to be put into a model.

        **Errors:** `FileError` where there are none, `MismatchError` for a file of another kind,
        `DamagedFileError`.
        """
        return cls(posterior=None, ensemble=None, **read_samples(to_path(folder)))

    def _require_posterior(self) -> Posterior:
        """**Errors:** `ParameterError` where there is none."""
        if self.posterior is None:
            raise ParameterError(
                "samples that were loaded know no model: put some_values(count) into yours"
            )
        return self.posterior

    def __repr__(self) -> str:
        chains, draws = self.table.shape[:2]
        lines = [
            f"Posterior of {len(self.labels)} numbers: {chains} chains × {draws} draws, "
            f"{self.num_divergent} divergent, {np.sum(self.num_steps)} gradients"
        ]
        low, middle, high = np.quantile(self.table, (0.05, 0.5, 0.95), axis=(0, 1))
        rows = [("parameter", "mean", "± std", "5 %", "median", "95 %", "bulk", "tail", "R-hat")]
        for k, label in enumerate(self.labels[:_MAX_ROWS]):
            numbers = (self.mean[k], self.std[k], low[k], middle[k], high[k])
            sizes = (self.bulk_sample_size[k], self.tail_sample_size[k])
            rows.append(
                (label, *(f"{x:.4g}" for x in numbers), *(f"{x:.0f}" for x in sizes), f"{self.r_hat[k]:.3f}")
            )  # fmt: skip
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        for row in rows:
            cells = [f"{x:>{w}}" for x, w in zip(row[1:], widths[1:], strict=True)]
            lines.append(f"  {row[0]:<{widths[0]}}  " + "  ".join(cells))
        if len(self.labels) > _MAX_ROWS:
            lines.append(f"  … and {len(self.labels) - _MAX_ROWS} more in .values")
        return "\n".join([*lines, *(f"  ! {remark}" for remark in self.remarks)])


def collect_samples(
    posterior: Posterior, ensemble: Ensemble, warmup: int, num_chains: int, max_steps: int
) -> PosteriorSamples:
    """The draws after the warm-up of the chains that are complete and did not fail."""
    ok = np.asarray(ensemble.ok)
    frames = {name: np.asarray(ensemble[name])[ok] for name in ensemble.frames}
    # Frame 0 is the start, frames 1 … warmup the warm-up.
    kept = {name: x[:, warmup + 1 :] for name, x in frames.items()}
    z = as_device_array(kept["z"].astype(posterior.coordinates.center.dtype))
    by_draw = jax.vmap(jax.vmap(posterior.coordinates.values))
    found = jax.jit(by_draw)(z)
    values = {name: np.asarray(found[name]) for name in posterior.names}  # JAX sorts names
    chains, draws = z.shape[:2]
    labels = element_labels(tuple(values), tuple(x.shape[2:] for x in values.values()))
    table = np.concatenate([x.reshape(chains, draws, -1) for x in values.values()], axis=2)
    return PosteriorSamples(
        posterior, ensemble, values, labels, table.astype(float),
        kept["log_density"], kept["energy"], kept["acceptance"], kept["num_steps"],
        kept["is_divergent"].astype(bool), kept["step_size"][:, -1], num_chains, max_steps,
        posterior.is_proper,
    )  # fmt: skip
