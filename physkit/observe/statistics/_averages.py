"""Running averages of quantities, in constant memory."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import Frame, ObserverError, PyTree, static

from .._observer import AbstractObserver, AbstractQuantity, as_quantity, check_interval
from .._snapshot import Snapshot
from ._block_average import StreamingBlocks
from ._compensated_sums import Moments


class Average(AbstractObserver):
    """Running mean and variance of named quantities, observed every `interval` steps.

        Average(10, pressure=Pressure(), stress=StressTensor())

    Summary, by name: `mean`, `variance` (of single samples, not of the mean; NaN where it is beyond the
    precision, as of energies in joules and float32), `count`.

    **Arguments:** quantities, or plain functions of a `Snapshot`, of any shape, by name.

    **Notes:** sums are compensated, so float32 loses nothing over long runs. For an error bar of
    the mean take `BlockAverage`: successive samples are correlated.

    **Reference:** Welford, Technometrics 4, 419 (1962).
    """

    interval: int = static()
    outputs: dict[str, AbstractQuantity]

    def __init__(self, interval: int, **outputs: Any):
        self.interval = check_interval(interval)
        self.outputs = _quantities("Average", outputs)

    def init(self, snapshot: Snapshot) -> dict[str, Moments]:
        return {
            name: Moments.zero(*_shape_and_dtype(q, snapshot)) for name, q in self.outputs.items()
        }

    def __call__(
        self, snapshot: Snapshot, observer_state: dict[str, Moments]
    ) -> tuple[Frame, PyTree]:
        new_state = {}
        for name, quantity in self.outputs.items():
            value = _as_floating(quantity(snapshot))
            # Moments count samples per element; here every element has a value in every sample.
            new_state[name] = observer_state[name].plus(value, jnp.ones(value.shape, bool))
        return {}, new_state

    def summary(self, observer_state: dict[str, Moments]) -> Frame:
        return {
            name: {"mean": m.mean, "variance": m.variance, "count": m.count}
            for name, m in observer_state.items()
        }


class BlockAverage(AbstractObserver):
    """Mean of named quantities with an error bar that accounts for correlation in time, by streaming blocking.

        BlockAverage(10, temperature=Temperature(), energy=PotentialEnergy())

    Summary, by name: the fields of `block_average` (`mean`, `error`, `converged`, `level`,
    `errors`, `uncertainties`, `counts`). Memory per element does not grow with the run.

    **Arguments:** quantities, or plain functions of a `Snapshot`, of any shape, by name.

    **Good values:** an interval of about the correlation time; runs of at least a hundred of them.

    **Notes:** start it on an equilibrated state: a drift looks like an endless correlation time.

    **Reference:** Flyvbjerg & Petersen, J. Chem. Phys. 91, 461 (1989).
    """

    interval: int = static()
    outputs: dict[str, AbstractQuantity]

    def __init__(self, interval: int, **outputs: Any):
        self.interval = check_interval(interval)
        self.outputs = _quantities("BlockAverage", outputs)

    def init(self, snapshot: Snapshot) -> dict[str, StreamingBlocks]:
        return {
            name: StreamingBlocks.zero(*_shape_and_dtype(q, snapshot))
            for name, q in self.outputs.items()
        }

    def __call__(
        self, snapshot: Snapshot, observer_state: dict[str, StreamingBlocks]
    ) -> tuple[Frame, PyTree]:
        values = {name: _as_floating(quantity(snapshot)) for name, quantity in self.outputs.items()}
        return {}, {name: observer_state[name].plus(value) for name, value in values.items()}

    def summary(self, observer_state: dict[str, StreamingBlocks]) -> Frame:
        return {name: blocks.result()._asdict() for name, blocks in observer_state.items()}


def _quantities(owner: str, outputs: dict[str, Any]) -> dict[str, AbstractQuantity]:
    """The outputs of an observer as quantities; `owner` is its name, for errors."""
    if not outputs:
        raise ObserverError(f"{owner}(n, …) needs something to average, e.g. pressure=Pressure()")
    return {name: as_quantity(name, q) for name, q in outputs.items()}


def _shape_and_dtype(
    quantity: AbstractQuantity, snapshot: Snapshot
) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype of a quantity's value, found without computing it."""
    value = eqx.filter_eval_shape(lambda now: _as_floating(quantity(now)), snapshot)
    return value.shape, value.dtype


def _as_floating(value: PyTree) -> jax.Array:
    """`value` as an array of floating-point numbers: counts and conditions can be averaged, too."""
    # `float` is float32 or float64, as JAX is configured.
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)
