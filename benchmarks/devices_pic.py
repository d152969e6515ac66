"""Electrostatic particle-in-cell on a line of 256 cells, cloud in cell, leapfrog, float32."""

from benchmarks._devices import run_case
from benchmarks.pic import CELLS, DT, start


def make(size: int, part: int):
    import jax.numpy as jnp

    import physkit as pk

    x, v = start(size, "float32")
    x, v, length = x[: size // part] / part, v[: size // part], 20.0 / part
    box = pk.Box(jnp.full(1, length, x.dtype))
    weight = 20.0 / size
    particles = pk.Particles(x[:, None], v[:, None], weight, box, charge=-weight)
    mesh = pk.ParticleMesh(pk.Grid(box, (CELLS // part,)))
    return pk.Simulation(pk.VelocityVerlet(mesh), dt=DT), particles


if __name__ == "__main__":
    run_case(make, "devices_pic", 1_000_000, 5, 45)
