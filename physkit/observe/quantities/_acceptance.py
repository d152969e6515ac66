"""What Monte Carlo accepts."""

import jax
from jaxtyping import Array, Float

from physkit.core import ObserverError

from .._observer import AbstractQuantity
from .._snapshot import Snapshot


class Acceptance(AbstractQuantity):
    """The share of the last step's trials that were accepted, 0 … 1; its mean is what to tune.

        Average(1, acceptance=Acceptance())

    **Errors:** `ObserverError` unless the integrator is `HardSphereMonteCarlo` or `HybridMonteCarlo`.
    """

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        share = getattr(snapshot.aux, "acceptance", None)
        if not isinstance(share, jax.Array):
            raise ObserverError(
                "the acceptance is of HardSphereMonteCarlo and HybridMonteCarlo; "
                f"{type(snapshot.integrator).__name__} runs"
            )
        return share
