"""How much of a field each wavelength holds."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import concrete_value, explain_call
from physkit.geometry import Grid, SphericalGrid

from ._field import Field
from ._spectrum import square_wavenumber


class PowerSpectrum(NamedTuple):
    """Power per shell of wavenumbers: `k` `[shells]`, 1 / length; `power` `[shells]`.

    The sum of `power` over all shells is ⟨|u|²⟩, the mean over the volume of the square of the field; on a
    sphere over its area, of a field of harmonics up to the grid's degree.
    """

    k: Float[Array, " shells"]
    power: Float[Array, " shells"]


@explain_call
def power_spectrum(field: Field) -> PowerSpectrum:
    """Σ |û|² over shells of wavenumbers |k| (Parseval: the shells add up to the mean square).

        Σ_shells P = ⟨|u|²⟩

    Shells are as wide as the smallest wavenumber, centered on its multiples; the first holds the mean.
    All components are added up: of a velocity, P/2 is the energy spectrum. On a sphere a shell holds the
    harmonics of one degree l, with k = √(l(l + 1))/a.

    **Errors:** `ParameterError` when an axis of the box does not repeat.
    """
    grid, real = field.grid, field.is_real
    coefficients = field.spectrum().coefficients
    squared = coefficients.real**2 + coefficients.imag**2
    # (components, modes): all components of a mode together.
    squared = jnp.sum(squared.reshape(-1, *squared.shape[-grid.dimension :]), axis=0)
    # Real transforms keep half of the modes: each stands for itself and its conjugate.
    squared = squared * jnp.asarray(grid.mode_multiplicity(real=real), squared.dtype)
    if isinstance(grid, SphericalGrid):
        # Squares of harmonics have the integral 1 over the sine of the latitude, −1 … 1: ⟨u²⟩ = ½ Σ |û|².
        norm, shells = 2.0, grid.truncation + 1
        degree = np.arange(shells)
        k = jnp.asarray(np.sqrt(degree * (degree + 1)), squared.dtype) / grid.radius
        shell = jnp.broadcast_to(grid.modes()[1], squared.shape)
    else:
        # The forward transform is unnormalized: Σ |û|² is N² times the mean square (Parseval).
        norm, shells = float(np.prod(grid.shape)) ** 2, _count_shells(grid)
        width = 2 * np.pi / jnp.max(grid.space.lengths)
        k = jnp.arange(shells).astype(squared.dtype) * width
        wavenumber = jnp.sqrt(square_wavenumber(grid, real=real))
        # The last shell takes what lies beyond, and padding of modes over devices, whose multiplicity is 0.
        shell = jnp.clip(jnp.rint(wavenumber / width).astype(jnp.int32), 0, shells - 1)
    power = jax.lax.platform_dependent(
        squared.reshape(-1),
        shell.reshape(-1),
        cpu=functools.partial(_add_in_order, shells),
        default=functools.partial(_add_shell_by_shell, shells),
    )
    return PowerSpectrum(k, grid.psum_modes(power) / norm)


def _add_in_order(
    shells: int, squared: Float[Array, " n"], shell: Int[Array, " n"]
) -> Float[Array, " shells"]:
    return jnp.zeros(shells, squared.dtype).at[shell].add(squared)


def _add_shell_by_shell(
    shells: int, squared: Float[Array, " n"], shell: Int[Array, " n"]
) -> Float[Array, " shells"]:
    """The same without atomic additions, whose order changes from call to call on a GPU."""
    is_in = shell[None] == jnp.arange(shells, dtype=shell.dtype)[:, None]
    return jnp.sum(jnp.where(is_in, squared[None], 0), axis=1)


def _count_shells(grid: Grid) -> int:
    """Shells up to the corner of the box of modes; for a box whose lengths a trace hides, as if it had
    equal edges: what is beyond joins the last shell."""
    grid.require_periodic("power spectra")
    lengths = concrete_value(grid.space.lengths)
    lengths = np.ones(grid.dimension) if lengths is None else lengths
    corner = np.sqrt(sum((n / (2 * L)) ** 2 for n, L in zip(grid.shape, lengths, strict=True)))
    return int(np.ceil(corner * lengths.max())) + 1
