"""A box under a moving lid, n² cells, from rest: flow between walls. Steps per CPU second.

`--size` n; ν = 10⁻³, dt half of what the lid takes to pass a cell. Whole loops of steps.

- physkit as its system has it: ARS222, viscosity solved for, two projections a step, to rounding.
  `physkit-explicit`: `SSPRK2`, which is Heun's method, with explicit viscosity.
- PhiFlow: semi-Lagrangian advection, first order in time; one projection a step, by conjugate gradients to
  1e-3 relative (`phiflow`) or 1e-5 (`phiflow-1e-5`). Its matrices have indices of 32 bits: up to 215² cells.
- jax-cfd 0.2.1 carries no momentum between walls: its advection raises `NotImplementedError`.
"""

import time
from collections.abc import Callable
from typing import Any

from benchmarks._harness import ALL_CORES, least_seconds, print_measurement

UNIT = "steps/CPU s"
STEPS = 20
VISCOSITY = 1e-3


def timed(advance: Callable[[Any], Any], state: Any) -> dict:
    """`advance` makes `STEPS` steps; the least CPU time of several runs counts."""
    began = time.perf_counter()
    state = advance(state)
    first = time.perf_counter() - began
    best, used = least_seconds(lambda: advance(state))
    note = f"{STEPS / best:.3g} steps/s, {used / best:.1f} cores busy"
    return {"rate": STEPS / used, "unit": UNIT, "first": first, "note": note}


def run_physkit(simulation: Any, state: Any, precision: str) -> dict:
    import jax
    import jax.numpy as jnp

    import physkit as pk
    from physkit.core import cast_floats, replace_fields

    kind = jnp.dtype(precision)
    simulation = replace_fields(simulation, {"adjoint": pk.adjoints.Direct()})
    simulation, state = cast_floats(simulation, kind), cast_floats(state, kind)
    began = time.perf_counter()
    advance = lambda state: pk.simulate(simulation, state, STEPS).state
    compiled = jax.jit(advance, compiler_options=ALL_CORES).lower(state).compile()
    compiling = time.perf_counter() - began
    return timed(lambda state: jax.block_until_ready(compiled(state)), state) | {
        "compile": compiling
    }


def with_physkit(size: int, precision: str) -> dict:
    import physkit as pk

    return run_physkit(*pk.systems.lid_driven_cavity(size, reynolds=1 / VISCOSITY), precision)


def with_explicit_viscosity(size: int, precision: str) -> dict:
    import physkit as pk

    simulation, state = pk.systems.lid_driven_cavity(size, reynolds=1 / VISCOSITY)
    flow = pk.equations.IncompressibleFlow(VISCOSITY)
    return run_physkit(pk.Simulation(pk.SSPRK2(flow), dt=simulation.dt), state, precision)


def run_phiflow(size: int, precision: str, tolerance: float, *, heated: bool) -> dict:
    """The cavity, or a layer of 2n × n/2 cells that is `heated` from below."""
    import jax
    from phi.jax import flow as phi

    phi.math.set_global_precision(64 if precision == "float64" else 32)
    cells = {"x": 2 * size, "y": size // 2} if heated else {"x": size, "y": size}
    box = phi.Box(x=4.0, y=1.0) if heated else phi.Box(x=1.0, y=1.0)
    lid = 0 if heated else phi.vec(x=1.0, y=0.0)
    dt = (1.0 if heated else 0.5) / size
    velocity = phi.StaggeredGrid(0, {"x": 0, "y-": 0, "y+": lid}, bounds=box, **cells)
    sides = {"x": phi.ZERO_GRADIENT, "y-": 1, "y+": 0}
    heat = phi.CenteredGrid(lambda p: 1 - p.vector["y"], sides, bounds=box, **cells)
    pressure = phi.CenteredGrid(0, phi.ZERO_GRADIENT, bounds=box, **cells)
    solve = phi.Solve("CG", tolerance, 0)

    @phi.jit_compile
    def step(velocity, heat, pressure):
        moved = phi.advect.semi_lagrangian(velocity, velocity, dt)
        if heated:
            heat = phi.advect.semi_lagrangian(heat, velocity, dt)
            heat = phi.diffuse.explicit(heat, VISCOSITY, dt)
            moved = moved + dt * phi.resample(heat * (0, 1), to=velocity)
        moved = phi.diffuse.explicit(moved, VISCOSITY, dt)
        guess = phi.math.copy_with(solve, x0=pressure)
        moved, pressure = phi.fluid.make_incompressible(moved, (), guess)
        return moved, heat, pressure

    def advance(state):
        for _ in range(STEPS):
            state = step(*state)
        jax.block_until_ready([x.values.native(x.values.shape) for x in state[1:]])
        return state

    return timed(advance, (velocity, heat, pressure))


def with_phiflow(tolerance: float) -> Callable[[int, str], dict]:
    return lambda size, precision: run_phiflow(size, precision, tolerance, heated=False)


if __name__ == "__main__":
    print_measurement(
        {
            "physkit": with_physkit,
            "physkit-explicit": with_explicit_viscosity,
            "phiflow": with_phiflow(1e-3),
            "phiflow-1e-5": with_phiflow(1e-5),
        }
    )
