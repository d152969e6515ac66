"""How much of a field each wavelength holds."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import concrete_value, explain_call
from physkit.geometry import Grid

from ._field import Field
from ._spectrum import square_wavenumber


class PowerSpectrum(NamedTuple):
    """Power per shell of wavenumbers: `k` `[shells]`, 1 / length; `power` `[shells]`.

    The sum of `power` over all shells is ⟨|u|²⟩, the mean over the volume of the square of the field.
    """

    k: Float[Array, " shells"]
    power: Float[Array, " shells"]


@explain_call
def power_spectrum(field: Field) -> PowerSpectrum:
    """Σ |û|² over shells of wavenumbers |k| (Parseval: the shells add up to the mean square).

        Σ_shells P = ⟨|u|²⟩

    Shells are as wide as the smallest wavenumber, centered on its multiples; the first holds the mean.
    All components are added up: of a velocity, P/2 is the energy spectrum.

    **Errors:** `ParameterError` when an axis of the box does not repeat.
    """
    grid, real = field.grid, field.is_real
    coefficients = field.spectrum().coefficients
    squared = coefficients.real**2 + coefficients.imag**2
    # (components, modes): all components of a mode together.
    squared = jnp.sum(squared.reshape(-1, *squared.shape[-grid.dimension :]), axis=0)
    # Real transforms keep half of the modes: each stands for itself and its conjugate.
    squared = squared * jnp.asarray(grid.mode_multiplicity(real=real), squared.dtype)
    lengths = grid.space.lengths
    width = 2 * np.pi / jnp.max(lengths)
    shells = _count_shells(grid)
    k = jnp.sqrt(square_wavenumber(grid, real=real))
    # The last shell takes what lies beyond, and padding of modes over devices, whose multiplicity is 0.
    shell = jnp.clip(jnp.rint(k / width).astype(jnp.int32), 0, shells - 1)
    power = jax.lax.platform_dependent(
        squared.reshape(-1),
        shell.reshape(-1),
        cpu=functools.partial(_add_in_order, shells),
        default=functools.partial(_add_shell_by_shell, shells),
    )
    power = grid.psum_modes(power)
    # The forward transform is unnormalized: Σ |û|² is N² times the mean square (Parseval).
    cells = float(np.prod(grid.shape))
    return PowerSpectrum(jnp.arange(shells).astype(power.dtype) * width, power / cells**2)


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
