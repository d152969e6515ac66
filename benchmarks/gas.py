"""A gas by finite volumes in a periodic square, n² cells. M cells and steps per CPU second.

Kelvin and Helmholtz's layer without viscosity: HLLC, MUSCL, two stages a step (SSPRK2), steps of one size, in
both codes. `physkit-viscous` adds friction and conduction of heat, which astronomix's finite volumes lack. On a
GPU the second is one of the clock.
"""

import time
from typing import Any

from benchmarks._harness import ALL_CORES, enough, least_seconds, print_measurement, rate_of_cells

STEPS = 20


def result(advance: Any, size: int, compiling: float) -> dict:
    best, used = least_seconds(advance)
    return rate_of_cells(size**2 * enough(STEPS) / 1e6, best, used) | {"compile": compiling}


def run_physkit(integrator: Any, dt: Any, gas: Any, size: int, precision: str) -> dict:
    import jax
    import jax.numpy as jnp

    import physkit as pk
    from physkit.core import cast_floats

    kind = jnp.dtype(precision)
    sim = cast_floats(pk.Simulation(integrator, dt=dt, adjoint=pk.adjoints.Direct()), kind)
    gas = cast_floats(gas, kind)
    began = time.perf_counter()
    advance = lambda s: pk.simulate(sim, s, enough(STEPS)).state
    compiled = jax.jit(advance, compiler_options=ALL_CORES).lower(gas).compile()
    compiling = time.perf_counter() - began
    jax.block_until_ready(compiled(gas))
    return result(lambda: jax.block_until_ready(compiled(gas)), size, compiling)


def with_physkit(size: int, precision: str, **molecules: float) -> dict:
    import physkit as pk

    _, gas = pk.systems.kelvin_helmholtz(size)
    law = pk.equations.CompressibleEuler(5 / 3, **molecules)
    return run_physkit(pk.SSPRK2(law), 0.1 / size, gas, size, precision)


def with_viscosity(size: int, precision: str) -> dict:
    return with_physkit(size, precision, viscosity=1e-4, conductivity=1e-4)


def run_astronomix(
    size: int, precision: str, dt: float, gamma: float, fields: dict, **options: Any
) -> dict:
    """`fields`: those of `construct_primitive_state`, functions of the cells' coordinates x and y."""
    import astronomix as am
    import jax
    import jax.numpy as jnp
    from astronomix.option_classes.simulation_config import (
        DOUBLE_PRECISION,
        SINGLE_PRECISION,
        BoundarySettings,
        BoundarySettings1D,
    )

    ring = BoundarySettings1D(am.PERIODIC_BOUNDARY, am.PERIODIC_BOUNDARY)
    config = am.SimulationConfig(
        dimensionality=2,
        box_size=1.0,
        num_cells=size,
        backend=am.NATIVE_JAX,
        boundary_settings=BoundarySettings(ring, ring),
        fixed_timestep=True,
        num_timesteps=enough(STEPS),
        numerical_precision=DOUBLE_PRECISION if precision == "float64" else SINGLE_PRECISION,
        **options,
    )
    registered = am.get_registered_variables(config)
    middles = (jnp.arange(size, dtype=precision) + 0.5) / size
    x, y = jnp.meshgrid(middles, middles, indexing="ij")
    values = {name: jnp.broadcast_to(f(x, y), x.shape) for name, f in fields.items()}
    state = am.construct_primitive_state(config, registered, **values)
    config = am.finalize_config(config, state.shape)
    params = am.SimulationParams(t_end=enough(STEPS) * dt, gamma=gamma)
    advance = lambda: jax.block_until_ready(am.time_integration(state, config, params, registered))
    began = time.perf_counter()
    end = advance()
    compiling = time.perf_counter() - began
    if not jnp.all(jnp.isfinite(end)):
        raise RuntimeError("astronomix's state is not finite")
    return result(advance, size, compiling)


def with_astronomix(size: int, precision: str) -> dict:
    import astronomix as am
    import jax.numpy as jnp

    stream = lambda y: jnp.where(jnp.abs(y - 0.5) < 0.25, 1.0, 0.0)
    fields = {
        "density": lambda x, y: 1 + stream(y),
        "velocity_x": lambda x, y: stream(y) - 0.5,
        "velocity_y": lambda x, y: 0.01 * jnp.sin(4 * jnp.pi * x),
        "gas_pressure": lambda x, y: 2.5 + 0 * x,
    }
    return run_astronomix(
        size, precision, 0.1 / size, 5 / 3, fields,
        solver_mode=am.FINITE_VOLUME, riemann_solver=am.HLLC,
    )  # fmt: skip


if __name__ == "__main__":
    print_measurement(
        {
            "physkit": with_physkit,
            "physkit-viscous": with_viscosity,
            "astronomix": with_astronomix,
        }
    )
