"""Schrödinger's equation, and that of Gross and Pitaevskii."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import Clock, Module, PyTree, ShapeError, param, ratio, require_positive, static
from physkit.geometry import as_space_time_value

from .._equation import AbstractEquation
from .._field import Field
from .._spectrum import square_wavenumber


def as_potential(value: PyTree) -> PyTree:
    """Numbers and arrays as parameters; fields by their data; functions wrapped."""
    return as_space_time_value(value.data if isinstance(value, Field) else value)


class Schroedinger(AbstractEquation):
    """Schrödinger's equation for a complex field.

        iħ ∂ψ/∂t = −ħ²/2m ∇²ψ + V(t, x) ψ + g |ψ|² ψ

    With g ≠ 0 that of Gross and Pitaevskii, a condensate's. `SplitStep` keeps the norm to rounding
    for any step; `ground_state` finds the lowest state.

    **Arguments:**

    - `potential`: V, energy: a number, an array over the points, a real `Field`, a function
      `(t, *x) → V`, or a Module that is called like one and whose parameters have gradients.
    - `mass`: m.
    - `hbar`: ħ.
    - `interaction`: g, energy · volume.
    - `component`: the field's name, where the state has several components.

    **Errors:** `ShapeError` for a field that is not complex.

    **Good values:** several points per wavelength 2πħ/p; ħ = m = 1 are units, not numbers to tune.

    **Reference:** Schrödinger, Ann. Phys. 81, 109 (1926); Pitaevskii & Stringari, Bose–Einstein
    Condensation (2003), eq. 5.2.
    """

    potential: PyTree = eqx.field(converter=as_potential, default=0.0)
    mass: Float[Array, ""] = param(1.0)
    hbar: Float[Array, ""] = param(1.0)
    interaction: Float[Array, ""] = param(0.0)
    component: str | None = static(default=None)

    def __check_init__(self):
        require_positive(self, "mass", "hbar")

    def symbol(self, field: Field) -> Array:
        require_complex(field)
        rate = -ratio(self.kinetic(field), self.hbar)
        return jax.lax.complex(jnp.zeros_like(rate), rate)

    def nonlinear(self, clock: Clock, field: Field) -> Field:
        require_complex(field)
        rate = -ratio(self.local(clock.t, field), self.hbar)

        # i · rate · ψ by real products: rate is real, and a complex product would take twice as many.
        def turn(psi: Array) -> Array:
            return jax.lax.complex(-psi.imag * rate, psi.real * rate)

        return field.map(turn)

    def kinetic(self, field: Field) -> Float[Array, "..."]:
        """ħ²k²/2m per mode."""
        k2 = square_wavenumber(field.grid, real=field.is_real)
        # ħ² in SI units is beyond float32.
        return 0.5 * self.hbar * (ratio(self.hbar, self.mass) * k2)

    def local(self, t: ArrayLike, field: Field) -> Float[Array, "..."]:
        """V + g|ψ|² per point."""
        psi = field.data
        density = psi.real**2 + psi.imag**2
        return self.potential_at(t, field) + self.interaction * density

    def potential_at(self, t: ArrayLike, field: Field) -> Float[Array, "..."]:
        """V at the field's points, ready to broadcast."""
        v = self.potential
        if isinstance(v, Module):
            v = v(t, *field.coordinates)
            return jnp.asarray(v, field.real_dtype)
        v = jnp.asarray(v, field.real_dtype)
        cells = field.grid.shape
        fits = all(m in (1, n, n + 1) for m, n in zip(v.shape, cells, strict=False))
        if v.ndim and not (fits and v.ndim == len(cells)):
            raise ShapeError(
                f"a potential of shape {v.shape} for a wave function on a grid of {cells} cells: give one "
                "number, or one for each point"
            )
        return field.grid.local(v, field.location)

    def energy(self, field: Field, t: ArrayLike = 0.0) -> Float[Array, ""]:
        """⟨ψ|H|ψ⟩ / ⟨ψ|ψ⟩, an interaction counted once per pair (½g|ψ|⁴)."""
        require_complex(field)
        kinetic_psi = field.spectrum().multiply(self.kinetic(field)).field().data
        psi = field.data
        density = psi.real**2 + psi.imag**2
        local = self.potential_at(t, field) + 0.5 * self.interaction * density
        kinetic = (jnp.conj(psi) * kinetic_psi).real
        return ratio(field.grid.sum(kinetic + local * density), field.grid.sum(density))


def require_complex(field: Field) -> None:
    """**Errors:** `ShapeError` unless the field is one complex number per point."""
    if field.is_real or field.components:
        raise ShapeError(
            "a wave function is one complex number per point, e.g. Field.from_function(grid, "
            f"lambda x: jnp.exp(1j * k * x - x**2)); got {field.data.dtype}, components "
            f"{field.components}"
        )
