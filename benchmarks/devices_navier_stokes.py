"""Two-dimensional turbulence, vorticity by Fourier modes, ETDRK2, float32: transforms."""

from benchmarks._devices import run_case
from benchmarks.navier_stokes import VISCOSITY, step


def make(size: int, part: int):
    import jax
    import jax.numpy as jnp

    import physkit as pk

    box = pk.Box([2 * jnp.pi / part, 2 * jnp.pi])
    flow = pk.systems.random_vorticity(pk.Grid(box, (size // part, size)), jax.random.key(0))
    return pk.Simulation(pk.ETDRK2(pk.equations.VorticityTransport(VISCOSITY)), dt=step(size)), flow


if __name__ == "__main__":
    run_case(make, "devices_navier_stokes", 1024, 1, 5)
