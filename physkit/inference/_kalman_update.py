"""The ensemble Kalman update: members move by what their observed quantities miss, and by how they co-vary."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physkit.core import Module, ParameterError, concrete_value, matmul, param


class Localization(Module):
    """Lets an observation act nearby only: covariances are multiplied by a function of distance.

    ρ(d) of Gaspari & Cohn: like a Gaussian, and 0 beyond the radius. Small ensembles have spurious covariances
    at large distances, of size 1/√members.

    **Arguments:**

    - `state_position`: `[n]` or `[n d]`, where each number of the state is, in the order of its flattened
      arrays. `observed_position`: `[m]` or `[m d]`, of the observed quantities.
    - `radius`: beyond which nothing acts, length; twice the `c` of the reference.
    - `period`: of the domain along each axis; none if left out.

    **Errors:** `ParameterError` for a radius or period that is not above 0.

    **Good values:** a radius of some correlation lengths, so that fewer observations than members lie within.

    **Reference:** Gaspari & Cohn, Q. J. R. Meteorol. Soc. 125, 723 (1999), eq. (4.10).
    """

    state_position: Float[Array, "..."] = param()
    observed_position: Float[Array, "..."] = param()
    radius: Float[Array, ""] = param()
    period: Float[Array, "..."] | None = param(None)

    def __check_init__(self):
        for name in ("radius", "period"):
            value = concrete_value(getattr(self, name))
            if value is not None and not np.all(np.asarray(value) > 0):
                raise ParameterError(f"Localization({name}=…) must be above 0; got {value}")

    def weights(self) -> tuple[Float[Array, "n m"], Float[Array, "m m"]]:
        """ρ between numbers of the state and observed ones, and among these."""
        state, observed = (_as_columns(x) for x in (self.state_position, self.observed_position))
        return self._between(state, observed), self._between(observed, observed)

    def _between(self, a: Array, b: Array) -> Array:
        change = jnp.abs(a[:, None] - b[None])
        if self.period is not None:
            period = jnp.broadcast_to(self.period, change.shape).astype(change.dtype)
            change = jnp.minimum(change % period, period - change % period)
        distance = jnp.sqrt(jnp.sum(change**2, axis=-1))
        return gaspari_cohn(2 * distance / self.radius.astype(distance.dtype))


def gaspari_cohn(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The fifth-order piecewise rational function, 1 at 0 and 0 from 2 on."""
    near = 1 + x**2 * (-5 / 3 + x * (5 / 8 + x * (1 / 2 - x / 4)))
    safe = jnp.where(x > 0, x, 1)
    far = 4 - 5 * x + x**2 * (5 / 3 + x * (5 / 8 + x * (-1 / 2 + x / 12))) - 2 / (3 * safe)
    return jnp.where(x < 1, near, jnp.where(x < 2, far, 0))


def kalman_update(
    members: Float[Array, "k n"],
    predicted: Float[Array, "k m"],
    target: Float[Array, "k m"],
    variance: Float[Array, " m"],
    use: Bool[Array, " k"],
    localization: Localization | None = None,
) -> Float[Array, "k n"]:
    """Members moved towards targets, which are the observation with other noise for each of them.

        x ← x + C_xy (C_yy + R)⁻¹ (target − y)

    with the ensemble's covariances, of the members that `use` says.
    """
    weight = use.astype(members.dtype)
    count = jnp.sum(weight)
    states = _anomalies(members, weight, count)
    observed = _anomalies(predicted, weight, count)
    cross = matmul(states.T, observed) / (count - 1)  # [n m]
    own = matmul(observed.T, observed) / (count - 1)
    if localization is not None:
        of_state, of_observed = localization.weights()
        cross = cross * of_state.astype(cross.dtype)
        own = own * of_observed.astype(own.dtype)
    innovation = jnp.where(use[:, None], target - predicted, 0)
    solved = jnp.linalg.solve(own + jnp.diag(variance), innovation.T)  # [m k]
    return members + matmul(cross, solved).T


def _anomalies(x: Array, weight: Array, count: Array) -> Array:
    """Deviations from the mean of the members that count; 0 for the others."""
    safe = jnp.where(weight[:, None] > 0, x, 0)
    mean = jnp.sum(safe, axis=0) / count
    return jnp.where(weight[:, None] > 0, safe - mean[None], 0)


def _as_columns(x: Array) -> Array:
    return x[:, None] if x.ndim == 1 else x
