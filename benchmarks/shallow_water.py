"""Nonlinear rotating shallow water on a periodic C grid, Euler steps. M cells per second.

Every code does the same arithmetic: Sadourny's energy-conserving form, one rate a step. physkit runs it as
`run` does, with both cores; `jnp.roll` in a loop as JAX compiles it by default, and with both cores; numba
as one fused kernel on one and two threads.
"""

import time

from benchmarks._harness import ALL_CORES, describe_traffic, print_measurement, seconds

STEPS, DT, H = 50, 1.0, 1e3
GRAVITY, CORIOLIS = 9.81, 1e-4
UNIT = "M cells/s"


def start(size: int, precision: str):
    """A bump on 100 m of water, at rest."""
    import numpy as np

    x = (np.arange(size) - size / 2) / (size / 10)
    h = 100 + np.exp(-(x[:, None] ** 2) - x[None] ** 2)
    return [a.astype(precision) for a in (h, 0 * h, 0 * h)]


def report(size: int, precision: str, best: float, **more) -> dict:
    """`note`: what memory carries, if a step reads and writes the three fields once."""
    import numpy as np

    rate = size**2 * STEPS / best / 1e6
    note = describe_traffic(rate, 6 * np.dtype(precision).itemsize)
    return {"rate": rate, "unit": UNIT, "note": note, **more}


def timed(advance, state, size: int, precision: str, **options) -> dict:
    import jax

    began = time.perf_counter()
    compiled = jax.jit(advance, **options).lower(state).compile()
    compiling = time.perf_counter() - began
    began = time.perf_counter()
    jax.block_until_ready(compiled(state))
    first = time.perf_counter() - began
    best = seconds(lambda: jax.block_until_ready(compiled(state)), 5)
    return report(size, precision, best, compile=compiling, first=first)


def with_physkit(size: int, precision: str) -> dict:
    import jax.numpy as jnp

    import physkit as pk
    from physkit.core import cast_floats

    h, u, v = (jnp.asarray(a) for a in start(size, precision))
    grid = cast_floats(pk.Grid([H * size, H * size], (size, size)), h.dtype)
    water = pk.components.CGridShallowWaterState.of(grid, h, (u, v))
    flow = pk.equations.ShallowWater(GRAVITY, coriolis=CORIOLIS)
    sim = cast_floats(pk.Simulation(pk.Euler(flow), dt=DT, adjoint=pk.adjoints.Direct()), h.dtype)
    advance = lambda w: pk.simulate(sim, w, STEPS).state
    return timed(advance, water, size, precision, compiler_options=ALL_CORES)


def rolled(state):
    """One step in terms of `jnp.roll`."""
    import jax.numpy as jnp

    h, u, v = state
    west, south = (lambda x: jnp.roll(x, 1, 0)), (lambda x: jnp.roll(x, 1, 1))
    east, north = (lambda x: jnp.roll(x, -1, 0)), (lambda x: jnp.roll(x, -1, 1))
    hx, hy = 0.5 * (h + west(h)), 0.5 * (h + south(h))
    U, V = hx * u, hy * v
    q = (CORIOLIS + (v - west(v)) / H - (u - south(u)) / H) / (0.5 * (hx + south(hx)))
    B = GRAVITY * h + 0.25 * (u * u + east(u * u) + v * v + north(v * v))
    vq, uq = 0.5 * (V + west(V)) * q, 0.5 * (U + south(U)) * q
    du = 0.5 * (vq + north(vq)) - (B - west(B)) / H
    dv = -0.5 * (uq + east(uq)) - (B - south(B)) / H
    dh = (U - east(U)) / H + (V - north(V)) / H
    return h + DT * dh, u + DT * du, v + DT * dv


def with_rolls(size: int, precision: str, **options) -> dict:
    import jax
    import jax.numpy as jnp

    state = tuple(jnp.asarray(a) for a in start(size, precision))
    advance = lambda s: jax.lax.fori_loop(0, STEPS, lambda _, s: rolled(s), s)
    return timed(advance, state, size, precision, **options)


def with_numba(size: int, precision: str, threads: int = 1) -> dict:
    import numba
    import numpy as np

    numba.set_num_threads(threads)
    kind = np.dtype(precision).type
    g, f, dt, one, half, quarter = (kind(x) for x in (GRAVITY, CORIOLIS, DT, 1 / H, 0.5, 0.25))

    @numba.njit(fastmath=True, inline="always")
    def cell(h, u, v, hn, un, vn, i, w, e, j, s, t):
        q00 = (f + (v[i, j] - v[w, j] - u[i, j] + u[i, s]) * one) / (
            quarter * (h[i, j] + h[w, j] + h[i, s] + h[w, s])
        )
        q01 = (f + (v[i, t] - v[w, t] - u[i, t] + u[i, j]) * one) / (
            quarter * (h[i, t] + h[w, t] + h[i, j] + h[w, j])
        )
        q10 = (f + (v[e, j] - v[i, j] - u[e, j] + u[e, s]) * one) / (
            quarter * (h[e, j] + h[i, j] + h[e, s] + h[i, s])
        )
        v00, v0w = half * (h[i, j] + h[i, s]) * v[i, j], half * (h[w, j] + h[w, s]) * v[w, j]
        v01, v0x = half * (h[i, t] + h[i, j]) * v[i, t], half * (h[w, t] + h[w, j]) * v[w, t]
        u00, u0s = half * (h[i, j] + h[w, j]) * u[i, j], half * (h[i, s] + h[w, s]) * u[i, s]
        u10, u1s = half * (h[e, j] + h[i, j]) * u[e, j], half * (h[e, s] + h[i, s]) * u[e, s]
        b = g * h[i, j] + quarter * (u[i, j] ** 2 + u[e, j] ** 2 + v[i, j] ** 2 + v[i, t] ** 2)
        bw = g * h[w, j] + quarter * (u[w, j] ** 2 + u[i, j] ** 2 + v[w, j] ** 2 + v[w, t] ** 2)
        bs = g * h[i, s] + quarter * (u[i, s] ** 2 + u[e, s] ** 2 + v[i, s] ** 2 + v[i, j] ** 2)
        turn_x = quarter * ((v00 + v0w) * q00 + (v01 + v0x) * q01)
        turn_y = quarter * ((u00 + u0s) * q00 + (u10 + u1s) * q10)
        hn[i, j] = h[i, j] + dt * ((u00 - u10) + (v00 - v01)) * one
        un[i, j] = u[i, j] + dt * (turn_x - (b - bw) * one)
        vn[i, j] = v[i, j] + dt * (-turn_y - (b - bs) * one)

    @numba.njit(parallel=True, fastmath=True)
    def step(h, u, v, hn, un, vn):
        n, m = h.shape
        for i in numba.prange(n):
            w, e = i - 1 if i else n - 1, i + 1 if i < n - 1 else 0
            cell(h, u, v, hn, un, vn, i, w, e, 0, m - 1, 1)
            for j in range(1, m - 1):  # without a branch, so that it is vectorized
                cell(h, u, v, hn, un, vn, i, w, e, j, j - 1, j + 1)
            cell(h, u, v, hn, un, vn, i, w, e, m - 1, m - 2, 0)

    now = start(size, precision)
    then = [x.copy() for x in now]

    def advance():
        a, b = now, then
        for _ in range(STEPS):
            step(*a, *b)
            a, b = b, a

    began = time.perf_counter()
    step(*now, *then)
    compiling = time.perf_counter() - began
    return report(size, precision, seconds(advance, 5), compile=compiling)


if __name__ == "__main__":
    print_measurement(
        {
            "physkit": with_physkit,
            "jnp.roll": with_rolls,
            "jnp.roll-2": lambda *asked: with_rolls(*asked, compiler_options=ALL_CORES),
            "numba-1": with_numba,
            "numba-2": lambda *asked: with_numba(*asked, threads=2),
        }
    )
