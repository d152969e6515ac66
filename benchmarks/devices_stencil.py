"""Diffusion on a periodic square, five-point stencil, Euler steps, float32: memory and nothing else."""

from benchmarks._devices import run_case


def make(size: int, part: int):
    import jax.numpy as jnp

    import physkit as pk
    from physkit.core import cast_floats

    shape = (size // part, size)
    grid = cast_floats(pk.Grid([1.0 / part, 1.0], shape), jnp.float32)
    x, y = grid.coordinates()
    u = pk.Field(jnp.sin(2 * jnp.pi * part * x) * jnp.cos(2 * jnp.pi * y), grid)
    return pk.Simulation(
        pk.Euler(pk.equations.Diffusion(1.0, scheme=pk.schemes.Central(2))), dt=0.2 / size**2
    ), u


if __name__ == "__main__":
    run_case(make, "devices_stencil", 2048, 4, 44)
