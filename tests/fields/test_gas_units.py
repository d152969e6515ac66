"""The same gas in other units: the same flow, for every reconstruction, limiter and Riemann solver."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import cast_floats
from physkit.fields import Gas, reconstruct_faces
from physkit.fields.equations import CompressibleEuler
from physkit.fields.finite_volume import WENO5
from physkit.geometry import Box, Grid, Outflow

LIMITERS = (
    pk.limiters.Minmod(),
    pk.limiters.VanLeer(),
    pk.limiters.MonotonizedCentral(),
    pk.limiters.Superbee(),
)
SCHEMES = (
    pk.reconstructions.PiecewiseConstant(),
    *(pk.reconstructions.MUSCL(limiter) for limiter in LIMITERS),
    WENO5(),
)
SOLVERS = (pk.riemann.Rusanov(), pk.riemann.HLL(), pk.riemann.HLLC(), pk.riemann.ExactRiemann())
# Powers of two, so that the numbers of both systems have equal digits. In single precision squares of such
# densities, and products of such steps, are 0.
DENSITY, SPEED, LENGTH = 2.0**-70, 2.0**9, 2.0**-20
GAMMA = np.float32(1.4)


def tube(dtype, density=1.0, speed=1.0, length=1.0):
    """Toro's third problem, a blast wave: pressures of 1000 and 0.01."""
    grid = Grid(Box(jnp.asarray([length], dtype), (False,)), (24,))
    left = grid.coordinates()[0] < 0.5 * length
    pressure = jnp.where(left, 1000.0, 0.01) * density * speed**2
    wave = 0.1 * jnp.sin(jnp.arange(24.0)) + 1
    return Gas.from_primitive(
        grid, density * wave, speed * wave, pressure, 1.4, Outflow(), dtype=dtype
    )


def fluxes(gas):
    """Of every solver, `[scheme, face]` for each variable: all combinations, the schemes at once."""
    law = CompressibleEuler(GAMMA)
    faces = [
        reconstruct_faces(CompressibleEuler(GAMMA, reconstruction=scheme), gas, 0)
        for scheme in SCHEMES
    ]
    left, right = (
        tuple(jnp.stack(column) for column in zip(*(pair[side] for pair in faces), strict=True))
        for side in (0, 1)
    )
    return {type(solver).__name__: solver.flux(law, left, right, 0) for solver in SOLVERS}


@pytest.mark.slow
def test_all_schemes_and_solvers_give_the_same_fluxes_in_two_unit_systems():
    of = jax.jit(fluxes)
    ones = of(tube(jnp.float32))
    others = of(tube(jnp.float32, DENSITY, SPEED, LENGTH))
    mass = DENSITY * SPEED
    units = np.array([mass, mass * SPEED, mass * SPEED**2])
    # The powers in Newton's pressures are the only numbers that do not scale digit by digit.
    rounding = 200 * float(jnp.finfo(jnp.float32).eps)
    for solver, expected in ones.items():
        for values, scaled, unit in zip(expected, others[solver], units, strict=True):
            assert np.all(np.isfinite(values)), solver
            scale = float(jnp.max(jnp.abs(values)))
            np.testing.assert_allclose(
                np.asarray(scaled, float) / unit, values, rtol=rounding, atol=rounding * scale
            )


@pytest.mark.parametrize(
    "solver",
    [*SOLVERS[:3], pk.riemann.Roe(), pk.riemann.AUSMPlus(), pk.riemann.AUSMPlus(0.1)],
    ids=str,
)
def test_fluxes_have_the_same_derivatives_in_units_of_thin_gas(solver):
    """Densities of 10⁻²¹, those between stars in kg/m³: their squares are 0 in single precision."""
    law = cast_floats(CompressibleEuler(GAMMA, solver), jnp.float32)

    @jax.jit
    @jax.grad
    def slopes(state, unit):
        density, velocity, pressure, other = state
        half = 0.5 * unit
        left = law.primitive(law.conserved((density * unit, velocity, pressure * unit)))
        right = law.primitive((half * other, half * 0, half / 0.4))
        return law.riemann.flux(law, left, right, 0)[0] / unit

    state = tuple(jnp.float32(x) for x in (1.0, 0.1, 1.0, 1.0))
    ones = slopes(state, jnp.float32(1))
    assert all(np.isfinite(ones))
    # A power of two near 10⁻²¹.
    np.testing.assert_allclose(slopes(state, jnp.float32(2.0**-70)), ones, rtol=1e-4, atol=1e-4)


def test_weno_does_not_see_units_or_what_is_added_to_a_variable():
    rng = np.random.default_rng(0)
    cells = np.where(np.arange(40) < 20, 1.0, 0.125) + 0.01 * rng.normal(size=40)
    stencil = [jnp.asarray(cells[k : k + 36]) for k in range(5)]
    scheme, spread = WENO5(), jnp.asarray(np.ptp(cells))
    low, high = scheme.edges_of_scale(spread, *stencil)
    for factor in (1e-150, 1e-6, 1e3, 1e150):
        scaled = scheme.edges_of_scale(spread * factor, *[x * factor for x in stencil])
        np.testing.assert_allclose(np.asarray(scaled) / factor, (low, high), rtol=1e-12)
    raised = scheme.edges_of_scale(spread, *[x + 1000.0 for x in stencil])
    np.testing.assert_allclose(np.asarray(raised) - 1000.0, (low, high), atol=1e-8)
    # What is the same everywhere stays so, and 0 stays 0.
    for constant in (0.0, 3.0, 1e-300):
        flat = [jnp.full(36, constant)] * 5
        np.testing.assert_allclose(scheme.edges(*flat), constant, rtol=1e-15)
