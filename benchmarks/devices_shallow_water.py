"""Nonlinear rotating shallow water on a periodic C grid, Euler steps, float32."""

from benchmarks._devices import run_case
from benchmarks.shallow_water import CORIOLIS, DT, GRAVITY, H, start


def make(size: int, part: int):
    import jax.numpy as jnp

    import physkit as pk
    from physkit.core import cast_floats

    n = size // part
    h, u, v = (jnp.asarray(a[:n]) for a in start(size, "float32"))
    grid = cast_floats(pk.Grid([H * n, H * size], (n, size)), h.dtype)
    flow = pk.equations.ShallowWater(GRAVITY, coriolis=CORIOLIS)
    return pk.Simulation(pk.Euler(flow), dt=DT), pk.components.CGridShallowWaterState.of(
        grid, h, (u, v)
    )


if __name__ == "__main__":
    run_case(make, "devices_shallow_water", 2048, 2, 14)
