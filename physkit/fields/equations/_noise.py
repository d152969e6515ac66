"""Noise in space and time, of given correlation, on any field."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    Clock,
    Rate,
    State,
    cast_floats,
    get_component,
    param,
    require_nonnegative,
    require_positive,
    safe_minimum,
    safe_sqrt,
    static,
)
from physkit.geometry import Dirichlet, Neumann

from .._equation import require_field
from .._field import Field
from .._spectrum import square_wavenumber
from ..elliptic import divide_waves
from ..operators import staggered_divergence


class WhiteNoise(AbstractTendency):
    """Noise that forgets at once, on a field.

        ∂u/∂t = … + η,   ⟨η(x, t) η(x′, t′)⟩ = σ² C(x − x′) δ(t − t′)
        C(r) = exp(−r²/2ℓ²)/(2πℓ²)^(d/2),  or δ(r) for ℓ = 0

    With `conserved=True` η = ∇·(σ ζ), ζ one such noise per axis, so that ∫u dV stays: with σ² = 2 M k_B T it
    is that of the Cahn–Hilliard–Cook equation; without, σ² = 2 M k_B T is that of Allen and Cahn's. Of a
    complex field ⟨|η|²⟩ is σ²: half in the real and half in the imaginary part.

    **Arguments:**

    - `amplitude`: σ ≥ 0: unit of u · length^(d/2) / time^½, and one length more where conserved.
    - `length`: ℓ ≥ 0, over which the noise is correlated; none if left out. Between walls of two cells or more,
      and as if mirrored there: twice as strong beside them.
    - `conserved`: whether it only moves u about.
    - `component`: the field's name, where the state has several components.
    - `stream`: another number draws other noise, for a second noise on the same field.

    **Errors:** `ParameterError` without a key.

    **Notes:** needs a key. Drawn by (seed, step, point), so that it depends neither on chunks and restarts nor
    on devices, and the same in all stages of a step: averages of second-order methods are of order dt². On
    a finer grid the noise is another one.

    **Reference:** García-Ojalvo & Sancho, Noise in Spatially Extended Systems (1999), §2.1; Cook, Acta
    Metall. 18, 297 (1970).
    """

    amplitude: Float[Array, ""] = param()
    length: Float[Array, ""] | None = param(None)
    conserved: bool = static(default=False)
    component: str | None = static(default=None)
    stream: int = static(default=0)

    def __check_init__(self):
        require_nonnegative(self, "amplitude", "length")

    def rate(self, clock: Clock, state: State) -> Rate:
        field = require_field(get_component(state, self.component), "WhiteNoise")
        noise = self.draw(clock, field) * (self.amplitude / jnp.sqrt(clock.dt))
        return noise if self.component is None else {self.component: noise}

    def draw(self, clock: Clock, field: Field) -> Field:
        """√dt η/σ at the field's points."""
        grid = field.grid
        repeats = all(grid.periodic)
        # A name and a stream draw their own numbers; a hash of the name that is the same everywhere.
        label = zlib.crc32(f"{self.component}/{self.stream}".encode())
        key = jax.random.fold_in(clock.key, label)
        if not repeats:
            axes = range(grid.dimension)
            noise = (
                staggered_divergence([_unit_noise(key, field, k) for k in axes])
                if self.conserved
                else _unit_noise(key, field)
            )
            return noise if self.length is None else _spread_between_walls(noise, self.length)
        noise = _unit_noise(key, field)
        if self.length is None and not self.conserved:
            return noise
        k2 = square_wavenumber(grid, real=field.is_real)
        # ∇·ζ has the spectrum k² of independent ζ: |k| times one noise is as good.
        factor = safe_sqrt(k2) if self.conserved else jnp.ones_like(k2)
        if self.length is not None:
            factor = factor * jnp.exp(-0.25 * self.length**2 * k2)
        return noise.spectrum().multiply(factor).field()


class OrnsteinUhlenbeckNoise(AbstractTendency):
    """Noise that remembers: a field of its own, which relaxes and is kicked.

        ∂η/∂t = −η/τ + (σ/τ) ζ
        ⟨η(x, t) η(x′, t′)⟩ = σ²/(2τ) C(x − x′) exp(−|t − t′|/τ),   ζ, C as for `WhiteNoise`

    For τ → 0 it is `WhiteNoise(σ, ℓ)`. The noise is part of the state, so that runs resume with it; another
    term hands it on: `ETDRK2(CahnHilliard(component="phi"), OrnsteinUhlenbeckNoise(0.1, 2.0,
    component="noise"), lambda t, s: {"phi": s["noise"]})`.

    **Arguments:**

    - `amplitude`: σ ≥ 0, as for `WhiteNoise`.
    - `time`: τ > 0.
    - `length`, `component`, `stream`: as for `WhiteNoise`.

    **Errors:** as `WhiteNoise`.

    **Good values:** dt ≤ τ/4; from η = 0 the noise has its full strength after some 3τ.

    **Reference:** García-Ojalvo & Sancho, Noise in Spatially Extended Systems (1999), §2.2.
    """

    amplitude: Float[Array, ""] = param()
    time: Float[Array, ""] = param()
    length: Float[Array, ""] | None = param(None)
    component: str | None = static(default=None)
    stream: int = static(default=0)

    def __check_init__(self):
        require_nonnegative(self, "amplitude", "length")
        require_positive(self, "time")

    def rate(self, clock: Clock, state: State) -> Rate:
        field = require_field(get_component(state, self.component), "OrnsteinUhlenbeckNoise")
        white = WhiteNoise(
            self.amplitude, self.length, component=self.component, stream=self.stream
        )
        kicks = white.draw(clock, field) * (self.amplitude / jnp.sqrt(clock.dt))
        rate = (kicks - field.with_values(field.data)) * (1 / self.time)
        return rate if self.component is None else {self.component: rate}


def _spread_between_walls(noise: Field, length: Array) -> Field:
    """`noise` with its waves between walls damped by exp(−ℓ²k²/4)."""
    data = noise.data
    count = len(noise.components)
    template = noise.with_boundary(Neumann(0.0))
    # Waves of no strength left have no derivative either, instead of inf · 0.
    damping = lambda bend: jnp.exp(safe_minimum(-0.25 * length**2 * bend, 60.0))

    def spread(values: Array) -> Array:
        plain = template.replace(data=values, vector=False)
        return divide_waves(plain, values, damping)

    flat = data.reshape(-1, *data.shape[count:])
    if noise.is_real:
        parts = [spread(values) for values in flat]
    else:
        parts = [jax.lax.complex(spread(values.real), spread(values.imag)) for values in flat]
    return noise.with_values(jnp.stack(parts).reshape(data.shape))


def _unit_noise(key: Array, field: Field, axis: int | None = None) -> Field:
    """White noise of variance 1/(cell volume) at the field's points, or at the faces across an axis."""
    grid = field.grid
    location = field.location if axis is None else field.location.staggered_along(axis)
    key = key if axis is None else jax.random.fold_in(key, axis)
    # In single precision: the same numbers, whatever the precision of the field is.
    parts = () if field.is_real else (2,)
    draw = cast_floats(grid, jnp.float32).random_normal(key, (*parts, *field.components), location)
    values = draw.astype(field.real_dtype) / jnp.sqrt(grid.cell_volume)
    if not field.is_real:
        values = jax.lax.complex(values[0], values[1]) * float(np.sqrt(0.5))
    noise = field.with_values(values, location=location)
    # Nothing is moved through walls.
    closed = axis is not None and not all(grid.periodic)
    return noise.with_boundary(Dirichlet(0.0)) if closed else noise
