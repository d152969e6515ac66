"""Fourier neural operators: learned terms that see the whole field, at any resolution."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    Count,
    KeyLike,
    ParameterError,
    ShapeError,
    as_count,
    as_key,
    einsum,
    param,
    require_positive,
    scale_array,
    static,
)
from physkit.geometry import Grid

from .._equation import AbstractEquation
from .._field import Field
from .._spectrum import Spectrum, derivative_symbol


class FourierNeuralOperator(AbstractEquation):
    """A Fourier neural operator as the rate of a field, on a grid that repeats.

        ∂u/∂t = ∇·(Q v_L)   conserved (default),   or   Q v_L
        v_0 = P u,   v_{l+1} = v_l + σ(W_l v_l + b_l + F⁻¹ R_l(n) F v_l),   |n_a| ≤ modes_a

    Every layer multiplies each Fourier mode by a matrix R(n) of its own, of as many channels as the network is
    wide, so that it sees the whole domain at once; P, Q, W and b act point by point, alike everywhere. It reads
    and moves modes up to `modes` only: the same weights do the same on every grid that holds these, and the
    shortest waves are left alone. Weights are parameters, with gradients through every step.

    **Arguments:**

    - `channels`: components of the field; 1 for a scalar.
    - `modes`: highest mode number along each axis, one number for each axis of the grid.
    - `width`: channels inside.
    - `depth`: layers.
    - `key`: a random key, or a seed, for the first weights.
    - `scale`: the size of u, by which it is divided first; the rate is multiplied by it.
    - `conserved`: whether the rate is the divergence of what is learned, so that the mean of u stays.
    - `activation`: σ, smooth.
    - `component`: the field's name, where the state has several components.

    **Errors:** `ShapeError` for a field of other components or axes, a complex one, and a grid too coarse for
    `modes`; `ParameterError` for counts below 1, a `scale` that is not above 0, and between walls.

    **Good values:** `modes` somewhat below a third of the coarsest grid's points, so that what σ makes of
    them is not aliased into them; width 16 to 32, depth 2 to 4. It starts with small output, as hardly any
    term.

    **Notes:** mode numbers belong to the box: weights learned in one box do not serve one of another length.
    Works over several devices.

    **Reference:** Li et al., Fourier neural operator for parametric partial differential equations, ICLR
    (2021).
    """

    lift: Float[Array, "w c"] = param()
    local: Float[Array, "l w w"] = param()
    bias: Float[Array, "l w"] = param()
    cosine: Float[Array, "l w w *n"] = param()
    sine: Float[Array, "l w w *n"] = param()
    project: Float[Array, "o w"] = param()
    scale: Float[Array, ""] = param()
    modes: tuple[int, ...] = static()
    conserved: bool = static()
    activation: Callable = static()
    component: str | None = static()

    def __init__(
        self,
        channels: Count,
        modes: Count | Sequence[Count],
        width: Count = 16,
        depth: Count = 3,
        *,
        key: KeyLike,
        scale: Float[Array, ""] | float = 1.0,
        conserved: bool = True,
        activation: Callable = jax.nn.gelu,
        component: str | None = None,
    ):
        c, w, layers = (
            as_count(x, name, ParameterError)
            for x, name in ((channels, "channels"), (width, "width"), (depth, "depth"))
        )
        given = [modes] if np.ndim(modes) == 0 else modes
        self.modes = tuple(as_count(m, "modes", ParameterError) for m in given)
        outputs = c * len(self.modes) if conserved else c
        table = (layers, w, w, *(2 * m + 1 for m in self.modes))
        keys = jax.random.split(as_key(key), 5)
        normal = jax.random.normal
        self.lift = normal(keys[0], (w, c)) / c**0.5
        self.local = normal(keys[1], (layers, w, w)) / w**0.5
        self.bias = jnp.zeros((layers, w))
        self.cosine = normal(keys[2], table) / w
        self.sine = normal(keys[3], table) / w
        self.project = 0.1 * normal(keys[4], (outputs, w)) / w**0.5
        self.scale = scale
        self.conserved, self.activation, self.component = conserved, activation, component

    def __check_init__(self):
        require_positive(self, "scale")

    def nonlinear(self, clock: Clock, field: Field) -> Spectrum:
        del clock
        self._require_suitable(field)
        grid, d = field.grid, field.grid.dimension
        places, low = _places(grid, self.modes)
        u = field.data if field.components else field.data[None]
        # Only the modes that the network knows: on every grid it then sees the same function.
        v = grid.ifft(scale_array(grid.fft(self._mix(self.lift, u / self.scale)), low))
        for k in range(len(self.bias)):
            symbol = _multipliers(self.cosine[k], self.sine[k], places)
            modes = scale_array(grid.fft(v), low)
            waves = grid.ifft(einsum("oi...,i...->o...", symbol, modes))
            bias = self.bias[k].reshape(-1, *(1,) * d)
            v = v + self.activation(self._mix(self.local[k], v) + bias + waves)
        out = scale_array(grid.fft(self._mix(self.project, v)), low * self.scale)
        if self.conserved:
            flux = out.reshape(d, -1, *out.shape[1:])
            slopes = [scale_array(flux[a], derivative_symbol(grid, a, 1)) for a in range(d)]
            out = sum(slopes[1:], slopes[0])
        return field.spectrum().with_coefficients(out if field.components else out[0])

    def _mix(self, matrix: Float[Array, "o i"], x: Float[Array, "i ..."]) -> Float[Array, "o ..."]:
        return einsum("oi,i...->o...", matrix, x)

    def _require_suitable(self, field: Field) -> None:
        field.grid.require_periodic("FourierNeuralOperator")
        if not field.is_real or len(field.components) > 1:
            raise ShapeError(
                "FourierNeuralOperator acts on real fields, scalar or [c, …]: split complex ones in two"
            )
        channels = field.components[0] if field.components else 1
        if channels != self.lift.shape[1]:
            raise ShapeError(
                f"the field has {channels} components, the operator channels={self.lift.shape[1]}"
            )
        if len(self.modes) != field.grid.dimension:
            raise ShapeError(
                f"modes={self.modes} is of {len(self.modes)} axes, the grid of {field.grid.dimension}"
            )
        for m, n in zip(self.modes, field.grid.shape, strict=True):
            if 2 * m >= n:
                raise ShapeError(
                    f"{n} points hold modes below {n / 2:g}; the operator asks for {m}: take a finer grid"
                )


def _places(grid: Grid, modes: tuple[int, ...]) -> tuple[tuple[Array, ...], Array]:
    """Columns of the mode numbers in the tables of weights; 1 for modes that these hold, else 0."""
    numbers = [jnp.asarray(n) for n in grid.modes(real=True)]
    inside = [abs(n) <= m for n, m in zip(numbers, modes, strict=True)]
    low = inside[0]
    for mask in inside[1:]:
        low = low & mask
    columns = tuple(
        jnp.clip(n + m, 0, 2 * m).reshape(-1) for n, m in zip(numbers, modes, strict=True)
    )
    return columns, low.astype(grid.spacing.dtype)


def _multipliers(cosine: Array, sine: Array, columns: tuple[Array, ...]) -> Array:
    """R(n) for the modes of this device: R(−n) is the conjugate of R(n), so that real fields stay real."""
    axes = tuple(range(2, cosine.ndim))
    even, odd = (cosine + jnp.flip(cosine, axes)) / 2, (sine - jnp.flip(sine, axes)) / 2
    for axis, column in zip(axes, columns, strict=True):
        even, odd = (jnp.take(x, column, axis=axis) for x in (even, odd))
    return jax.lax.complex(even, odd)
