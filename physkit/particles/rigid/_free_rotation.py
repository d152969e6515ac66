"""Free rotation of rigid bodies: exact rotations about one body axis after the other (NO_SQUISH).

    H = Σ L_k²/2I_k;   exp(½t H₃) exp(½t H₂) exp(t H₁) exp(½t H₂) exp(½t H₃)

Each factor turns angular momentum and orientation about axis k by t L_k/I_k. L_k itself stays, so the opposite
time undoes it; L² and angular momentum in space are kept. A linear body turns about its constant L: exactly.

Reference: Miller et al., J. Chem. Phys. 116, 8649 (2002).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    ScaledFixedPoint,
    call_isolated,
    safe_arctan2,
    safe_divide,
    safe_norm,
)

from ._quaternions import from_rotation_vector, multiply

# Body axes in turn, and the part of the time for which a body rotates about each.
_SEQUENCE = ((2, 0.5), (1, 0.5), (0, 1.0), (1, 0.5), (2, 0.5))
# By axis: the plane in which angular momentum turns clockwise, and those in which the quaternion turns.
_PLANES = (
    ((1, 2), ((0, 1), (3, 2))),
    ((2, 0), ((0, 2), (1, 3))),
    ((0, 1), ((0, 3), (2, 1))),
)

Momenta = Float[Array, "n 3"]
Orientations = Float[Array, "n 4"]


def rotate_freely(
    momentum: Momenta, orientation: Orientations, inertia: Momenta, dt: Array, linear: bool
) -> tuple[Momenta, Orientations]:
    """Angular momentum (body axes) and orientation after a time `dt` without torque.

    - `inertia`: 0 for what does not turn; `linear`: whether that about the first axis is 0 for all.
    """
    if linear:
        turn = from_rotation_vector(dt * safe_divide(momentum, inertia))
        return momentum, multiply(orientation, turn)
    x, q = list(jnp.moveaxis(momentum, -1, 0)), list(jnp.moveaxis(orientation, -1, 0))
    for axis, part in _SEQUENCE:
        angle = part * dt * safe_divide(x[axis], inertia[:, axis])
        (i, j), planes = _PLANES[axis]
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
        x[i], x[j] = cosine * x[i] + sine * x[j], cosine * x[j] - sine * x[i]
        cosine, sine = jnp.cos(angle / 2), jnp.sin(angle / 2)
        for a, b in planes:
            q[a], q[b] = cosine * q[a] - sine * q[b], cosine * q[b] + sine * q[a]
    return jnp.stack(x, axis=-1), jnp.stack(q, axis=-1)


def rotate_exactly(
    momentum: ScaledFixedPoint,
    orientation: ScaledFixedPoint,
    inertia: Momenta,
    dt: Array,
    linear: bool,
) -> tuple[ScaledFixedPoint, ScaledFixedPoint]:
    """`rotate_freely` of fixed-point numbers, by shears: the opposite `dt` undoes it to the last bit."""
    # Angles of |dt|: forward and backward must round alike, and the sign goes in exactly.
    sign, time = jnp.sign(dt), jnp.abs(dt)
    if linear:
        # About L, which lies across the line: turn the second axis there, rotate about it, turn it back.
        across, angle = call_isolated(_turn_of_line, momentum.to_float(), inertia, time)
        for axis, half, direction in ((0, across, 1), (1, angle, sign), (0, across, -1)):
            orientation = _turn(orientation, _PLANES[axis][1], half, direction, 1)
        return momentum, orientation
    for axis, part in _SEQUENCE:
        half, quarter = call_isolated(
            _half_angle_tangents, momentum.to_float()[:, axis], inertia[:, axis], part * time
        )
        plane, planes = _PLANES[axis]
        momentum = _turn(momentum, (plane,), half, sign, -1)
        orientation = _turn(orientation, planes, quarter, sign, 1)
    return momentum, orientation


def _turn(
    numbers: ScaledFixedPoint,
    planes: tuple[tuple[int, int], ...],
    half: Float[Array, " n"],
    direction: Array | int,
    orient: int,
) -> ScaledFixedPoint:
    """Turned in `planes` by an angle with tan ½θ = `half`, as three shears; back for the other direction."""
    sine = call_isolated(_sine_of, half)
    # x −= τ y, y += sin θ x, x −= τ y. The source of a shear is not changed by it.
    for factor, to_first in ((-half, True), (sine, False), (-half, True)):
        x = numbers.to_float()
        columns = [jnp.zeros_like(half)] * x.shape[1]
        for a, b in planes:
            target, source = (a, b) if to_first else (b, a)
            columns[target] = (orient * direction) * (factor * x[:, source])
        numbers = numbers.add(jnp.stack(columns, axis=-1))
    return numbers


def _half_angle_tangents(
    momentum: Float[Array, " n"], inertia: Float[Array, " n"], time: Array
) -> tuple[Array, Array]:
    """tan ½θ and tan ¼θ of the rotation about one axis."""
    quarter = jnp.tan(0.25 * time * safe_divide(momentum, inertia))
    return 2 * quarter / (1 - quarter * quarter), quarter


def _turn_of_line(momentum: Momenta, inertia: Momenta, time: Array) -> tuple[Array, Array]:
    """tan ¼ of the angle from the second axis to L, and of the angle of the rotation about L."""
    across = safe_arctan2(momentum[:, 2], momentum[:, 1])
    rate = safe_divide(safe_norm(momentum, axis=-1), inertia[:, 1])
    return jnp.tan(across / 4), jnp.tan(0.25 * time * rate)


def _sine_of(half: Array) -> Array:
    """sin θ from tan ½θ."""
    return 2 * half / (1 + half * half)
