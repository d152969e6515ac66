"""`Populations`: how many molecules, animals or cells there are of each species."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from physkit.core import (
    AbstractComponent,
    ComponentError,
    DeclarationError,
    Rate,
    concrete_value,
    data as evolving,
    describe,
    param,
    replace_fields,
    require_positive,
)


class Populations(AbstractComponent):
    """Copy numbers of some species in a well-stirred volume.

        Populations([100, 0], volume=10.0)

    **Arguments:**

    - `counts`: `[species]`, whole numbers from 0 to 2³¹ − 1.
    - `volume`: Ω, which makes numbers of concentrations; volume unit.

    **Errors:** `ComponentError` for counts that are no whole numbers, or negative, or not `[species]`;
    `ParameterError` for a volume that is not positive.
    """

    counts: Int[Array, " species"] = evolving()
    volume: Float[Array, ""] = param(1.0)

    def __init__(self, counts: ArrayLike | Sequence[Any], volume: ArrayLike = 1.0):
        if isinstance(counts, dict):
            raise ComponentError(
                f"counts are a list, in the order of the network's species; got {describe(counts)}: "
                "[counts[name] for name in network.species]"
            )
        array = jnp.asarray(counts)
        numbers = concrete_value(array)
        if not jnp.issubdtype(array.dtype, jnp.integer) or array.ndim != 1:
            raise ComponentError(f"counts are whole numbers, [species]; got {describe(counts)}")
        if numbers is not None and ((numbers < 0) | (numbers > np.iinfo(np.int32).max)).any():
            raise ComponentError(f"counts are from 0 to 2³¹ − 1; got {describe(counts)}")
        self.counts = array.astype(jnp.int32)
        self.volume = jnp.asarray(volume, float) if not hasattr(volume, "dtype") else volume
        require_positive(self, "volume")

    def with_counts(self, counts: Int[Array, " species"]) -> "Populations":
        """Other copy numbers in the same volume, unchecked."""
        return replace_fields(self, {"counts": counts})

    def shift(self, delta: Rate) -> "Populations":
        """**Errors:** `DeclarationError`: whole numbers have no rate."""
        raise DeclarationError(
            "copy numbers jump and have no rate: Gillespie(network) and TauLeaping(network) move them; "
            "RK4(RateEquations(network)) moves concentrations, [species]"
        )
