"""Gas dynamics and magnetohydrodynamics by finite volumes in a periodic square. M cells per second and step.

Two stages a step (SSPRK2), MUSCL with van Leer's limiter; `physkit` HLLC for a viscous gas, `physkit-mhd` HLLD
and constrained transport. astronomix, where it is installed, takes its own defaults of the same order. As `run`
does, with both cores.
"""

import time

from benchmarks._harness import ALL_CORES, print_measurement, seconds

STEPS, UNIT = 10, "M cells/s"


def timed(sim, state, size: int) -> dict:
    import jax

    import physkit as pk

    began = time.perf_counter()
    advance = lambda s: pk.simulate(sim, s, STEPS).state
    compiled = jax.jit(advance, compiler_options=ALL_CORES).lower(state).compile()
    compiling = time.perf_counter() - began
    jax.block_until_ready(compiled(state))
    best = seconds(lambda: jax.block_until_ready(compiled(state)), 3)
    return {"rate": size**2 * STEPS / best / 1e6, "unit": UNIT, "compile": compiling}


def with_physkit(size: int, precision: str) -> dict:
    import jax.numpy as jnp

    import physkit as pk
    from physkit.core import cast_floats

    dtype = jnp.dtype(precision)
    _, gas = pk.systems.kelvin_helmholtz(size)
    law = pk.equations.CompressibleEuler(5 / 3, viscosity=1e-4, conductivity=1e-4)
    sim = pk.Simulation(pk.SSPRK2(law), dt=0.1 / size, adjoint=pk.adjoints.Direct())
    return timed(cast_floats(sim, dtype), cast_floats(gas, dtype), size)


def with_magnetic_field(size: int, precision: str) -> dict:
    import jax.numpy as jnp

    import physkit as pk
    from physkit.core import cast_floats

    dtype = jnp.dtype(precision)
    sim, gas = pk.systems.orszag_tang(size)
    sim = pk.Simulation(sim.integrator, dt=sim.dt, adjoint=pk.adjoints.Direct())
    return timed(cast_floats(sim, dtype), cast_floats(gas, dtype), size)


if __name__ == "__main__":
    print_measurement({"physkit": with_physkit, "physkit-mhd": with_magnetic_field})
