"""Convert and check the numbers of rigid bodies, with errors that name them."""

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from physkit.core import ParameterError, concrete_value, is_concrete, require_in_range

from .._arguments import Numbers, as_argument, as_numbers
from ._quaternions import normalize

_NORM = 1e-3  # what a quaternion with four digits may be off its length
_MASS = 1e-3  # what masses with four digits may be off their sum, as a fraction


def per_body(value: Numbers, shape: tuple[int, ...], dtype: DTypeLike, name: str) -> Array:
    """`value`, an array of this shape or its last axes, the same for all bodies."""
    if isinstance(value, list | tuple) and not is_concrete(value):
        value = jnp.asarray(value)
    if 0 < np.ndim(value) < len(shape) and np.shape(value) == shape[-np.ndim(value) :]:
        xp = np if is_concrete(value) else jnp
        value = xp.broadcast_to(xp.asarray(value), shape)
    return as_argument(value, shape, dtype, name)


def as_orientation(value: Numbers | None, n: int, dtype: DTypeLike) -> Float[Array, "n 4"]:
    """Quaternions of length 1, `[n 4]`.

    **Errors:** `ParameterError` for one that is not normalized.
    """
    q = per_body([1.0, 0.0, 0.0, 0.0] if value is None else value, (n, 4), dtype, "orientation")
    numbers = concrete_value(q)
    if numbers is None:
        return normalize(q)
    length = np.linalg.norm(numbers, axis=1)
    wrong = ~(np.abs(length - 1) < _NORM)
    if wrong.any():
        b = int(np.argmax(wrong))
        raise ParameterError(
            f"orientations are unit quaternions (w, x, y, z); orientation[{b}] has length {length[b]:.6g}. "
            "Divide each by its length"
        )
    return as_argument(numbers / length[:, None], (n, 4), dtype, "orientation")


def check_inertia(inertia: Float[Array, "n 3"]) -> None:
    """**Errors:** `ParameterError` for moments that no rigid body has, where no trace hides them."""
    moments = concrete_value(inertia)
    if moments is None or not len(moments):
        return
    ordered = np.sort(moments, axis=1)
    largest = ordered[:, 2]
    # Zero for a line is stated exactly: a moment that is nearly 0 would turn at any speed.
    is_line = (moments[:, 0] == 0) & np.isclose(moments[:, 1], moments[:, 2], 1e-6)
    wrong = ~((moments > 0).all(axis=1) | is_line & (largest > 0))
    if wrong.any():
        b = int(np.argmax(wrong))
        raise ParameterError(
            f"moments of inertia must be positive; inertia[{b}] = {moments[b].tolist()}. Of a linear body they "
            "are (0, I, I), along its axis first; what does not turn at all is a point: use Particles"
        )
    tolerance = 64 * float(np.finfo(moments.dtype).eps)
    excess = largest - ordered[:, 0] - ordered[:, 1]
    wrong = excess > np.maximum(tolerance, 1e-6) * largest
    if wrong.any():
        b = int(np.argmax(wrong))
        raise ParameterError(
            f"no body has the moments of inertia inertia[{b}] = {moments[b].tolist()}: the sum of two is never "
            "below the third (they are Σ m (y² + z²), Σ m (z² + x²), Σ m (x² + y²))"
        )


def require_moments_in_range(moments: Float[np.ndarray, "... 3"], dtype: DTypeLike) -> None:
    """**Errors:** `ParameterError` for one that `dtype` cannot hold: as 0 it would pass for that of a line."""
    positive = moments[moments > 0]
    if positive.size:
        for moment in (positive.min(), positive.max()):
            require_in_range(np.asarray(moment), dtype, "a moment of inertia")


def is_linear(inertia: Float[Array, "n 3"]) -> bool:
    """Whether all bodies are lines; False where a trace hides it.

    **Errors:** `ParameterError` for lines beside other bodies.
    """
    moments = concrete_value(inertia)
    if moments is None or not len(moments):
        return False
    lines = moments[:, 0] == 0
    if lines.any() and not lines.all():
        raise ParameterError(
            f"{lines.sum()} of {len(lines)} bodies are linear: give them a component of their own"
        )
    return bool(lines.all())


def check_site_mass(site_mass: Float[Array, "n s"], mass: Float[Array, " n"]) -> None:
    """**Errors:** `ParameterError` where the masses of a body's sites do not add up to its own."""
    parts, whole = concrete_value(site_mass), concrete_value(mass)
    if parts is None or whole is None:
        return
    total = parts.sum(axis=1)
    wrong = ~(np.abs(total - whole) <= _MASS * np.abs(whole))
    if wrong.any():
        b = int(np.argmax(wrong))
        raise ParameterError(
            f"the sites of body {b} have the mass {total[b]:g}, the body has {whole[b]:g}: gravity would move "
            "it by another mass than its own. Leave site_mass out, or give mass=, their sum"
        )


def as_masses(value: Numbers, n: int, count: int, dtype: DTypeLike) -> Float[Array, "n s"]:
    """Masses of sites, `[n s]`.

    **Errors:** `ParameterError` for one that is negative, or a body without any.
    """
    numbers = concrete_value(as_numbers(value, "mass"))
    masses = per_body(value, (n, count), dtype, "mass")
    if numbers is not None and not (numbers >= 0).all():
        raise ParameterError(f"masses of sites must not be negative; got {numbers.min():g}")
    if numbers is not None and not (np.sum(np.broadcast_to(numbers, (n, count)), axis=1) > 0).all():
        raise ParameterError("a body has no mass: at least one of its sites must")
    return masses
