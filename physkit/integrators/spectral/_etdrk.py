"""Exponential time differencing: L exactly, N by Runge–Kutta stages."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import phi_functions, scale_array

from .._integrator import StepSize
from ..runge_kutta import _tableau as table
from ..runge_kutta._tableau import Tableau
from ._exponential import AbstractExponential, ExponentialTable


class ETDRK2(AbstractExponential):
    """Exponential time differencing Runge–Kutta method. Order 2, two evaluations of N a step.

        a  = e^z u + dt φ₁(z) N(u)
        u' = a + dt φ₂(z) (N(a) − N(u)),   z = dt·L

    L, the symbols of the equations among the tendencies, is solved exactly: it never limits dt.
    Everything else is N; components without a symbol are advanced by `Heun`'s method. The fields'
    Fourier coefficients are carried, so that a step transforms what N needs and the new state once.

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed:
    `ETDRK2(Diffusion(0.1), lambda t, u: u * (1 - u))`.

    **Errors:** `ParameterError` where an equation has a symbol and its field's box has walls.

    **Good values:** dt as N alone allows.

    **Reference:** Cox & Matthews, J. Comput. Phys. 176, 430 (2002), eq. 20–22.
    """

    tableau: ClassVar[Tableau] = table.HEUN

    def coefficients(self, symbol: Array, dt: StepSize) -> ExponentialTable:
        z = scale_array(symbol, dt)
        one, two, _ = phi_functions(z)
        decay = jnp.exp(z)
        # Rows: a, then u′. With a put in, u′ = e^z u + dt (φ₁ − φ₂) N(u) + dt φ₂ N(a).
        return ExponentialTable(
            (decay, decay),
            ((scale_array(one, dt),), (scale_array(one - two, dt), scale_array(two, dt))),
        )


class ETDRK4(AbstractExponential):
    """Exponential time differencing Runge–Kutta method. Order 4, four evaluations of N a step.

        a  = e^{z/2} u + ½dt φ₁(z/2) N(u)
        b  = e^{z/2} u + ½dt φ₁(z/2) N(a)
        c  = e^{z/2} a + ½dt φ₁(z/2) (2N(b) − N(u))
        u' = e^z u + dt [(φ₁ − 3φ₂ + 4φ₃) N(u) + (2φ₂ − 4φ₃) (N(a) + N(b)) + (4φ₃ − φ₂) N(c)]

    with φₖ = φₖ(z), z = dt·L. L, the symbols of the equations among the tendencies, is solved
    exactly: it never limits dt. Everything else is N; components without a symbol are advanced by
    `RK4`. The fields' Fourier coefficients are carried, so that a step transforms what N needs and
    the new state once.

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed:
    `ETDRK4(KuramotoSivashinsky())`.

    **Errors:** `ParameterError` where an equation has a symbol and its field's box has walls.

    **Good values:** dt as N alone allows. With N that contains stiff parts of its own the order may
    drop.

    **Reference:** Cox & Matthews, J. Comput. Phys. 176, 430 (2002), eq. 26–29; Kassam & Trefethen,
    SIAM J. Sci. Comput. 26, 1214 (2005).
    """

    tableau: ClassVar[Tableau] = table.RK4

    def coefficients(self, symbol: Array, dt: StepSize) -> ExponentialTable:
        z = scale_array(symbol, dt)
        half, whole = jnp.exp(z / 2), jnp.exp(z)
        inner = scale_array(phi_functions(z / 2)[0], dt / 2)
        one, two, three = phi_functions(z)
        # dt times f₁, 2f₂ and f₃ of Kassam & Trefethen. Their closed forms lose all digits near z = 0; φ
        # functions do not.
        first = scale_array(one - 3 * two + 4 * three, dt)
        middle = scale_array(2 * two - 4 * three, dt)
        last = scale_array(4 * three - two, dt)
        return ExponentialTable(
            (half, half, whole, whole),
            (
                (inner,),
                (None, inner),
                # c starts from a, not from u: e^{z/2} a put in gives e^z u and (e^{z/2} − 1) N(u).
                (inner * jnp.expm1(z / 2), None, 2 * inner),
                (first, middle, middle, last),
            ),
        )
