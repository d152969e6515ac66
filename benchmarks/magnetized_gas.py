"""Magnetohydrodynamics: Orszag and Tang's vortex on n² cells. M cells and steps per CPU second.

physkit: finite volumes, HLLD, MUSCL, constrained transport, two stages. astronomix's finite volumes: HLL,
MUSCL, two stages for the gas and an implicit midpoint step for the field.
"""

from benchmarks._harness import print_measurement
from benchmarks.gas import run_astronomix, run_physkit


def with_physkit(size: int, precision: str) -> dict:
    import physkit as pk

    sim, gas = pk.systems.orszag_tang(size)
    return run_physkit(sim.integrator, sim.dt, gas, size, precision)


def with_astronomix(size: int, precision: str) -> dict:
    import astronomix as am
    import jax.numpy as jnp

    wave = lambda x: jnp.sin(2 * jnp.pi * x)
    strength = (4 * jnp.pi) ** -0.5
    fields = {
        "density": lambda x, y: 25 / (36 * jnp.pi) + 0 * x,
        "velocity_x": lambda x, y: -wave(y),
        "velocity_y": lambda x, y: wave(x),
        "velocity_z": lambda x, y: 0 * x,
        "magnetic_field_x": lambda x, y: -strength * wave(y),
        "magnetic_field_y": lambda x, y: strength * wave(2 * x),
        "magnetic_field_z": lambda x, y: 0 * x,
        "gas_pressure": lambda x, y: 5 / (12 * jnp.pi) + 0 * x,
    }
    dt = 0.0625 / size
    return run_astronomix(
        size, precision, dt, 5 / 3, fields, mhd=True, solver_mode=am.FINITE_VOLUME
    )


if __name__ == "__main__":
    print_measurement({"physkit": with_physkit, "astronomix": with_astronomix})
