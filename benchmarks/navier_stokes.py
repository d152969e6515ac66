"""Two-dimensional turbulence, ν = 10⁻³ on [0, 2π]², second order in time. Steps per second.

Whole loops, from vorticity to vorticity, each code compiled as JAX does by default and, on a CPU, with all
cores on loops (`ALL_CORES`), too; the faster counts. jax-cfd steps the Fourier coefficients, everyone
else the vorticity. Order 2 throughout: ETDRK2 for physkit and exponax, Crank–Nicolson with Heun's
method for jax-cfd (`jax-cfd-rk4` is the method of its examples, five stages).
"""

import time

from benchmarks._harness import ALL_CORES, print_measurement, seconds, wait_for_turn

VISCOSITY = 1e-3
UNIT = "steps/s"


def steps_for(size: int) -> int:
    return max(8, 200 * 256**2 // size**2)


def start(size: int):
    """Random vortices of unit speed."""
    import jax

    import physkit as pk

    grid = pk.Grid(pk.Box([2 * jax.numpy.pi] * 2), (size, size))
    return pk.systems.random_vorticity(grid, jax.random.key(0))


def step(size: int) -> float:
    return 0.5 / size


def timed(advance, state, size: int) -> dict:
    """`advance` makes `steps_for(size)` steps; the result's mean square is given, to compare codes."""
    import jax
    import jax.numpy as jnp

    variants = {"default": None, "all cores": ALL_CORES}
    if jax.default_backend() != "cpu":
        del variants["all cores"]
    ready = []
    for name, options in variants.items():
        began = time.perf_counter()
        compiled = jax.jit(advance, compiler_options=options).lower(state).compile()
        compiling = time.perf_counter() - began
        began = time.perf_counter()
        end = jax.block_until_ready(compiled(state))
        ready.append((name, compiled, compiling, time.perf_counter() - began, end))
    wait_for_turn()
    found = {}
    for name, compiled, compiling, first, end in ready:
        used = time.process_time()
        best = seconds(lambda run=compiled: jax.block_until_ready(run(state)))
        used = (time.process_time() - used) / 3
        rate = steps_for(size) / best
        busy = f"{name}, {used / best:.1f} cores busy, {1e3 * used / steps_for(size):.3g} ms CPU a step"
        mean = float(jnp.mean(jnp.abs(jax.tree.leaves(end)[0]) ** 2))
        found[rate] = {"rate": rate, "unit": UNIT, "compile": compiling, "first": first,
                       "note": f"{busy}, ⟨ω²⟩ = {mean:.7g}"}  # fmt: skip
    return found[max(found)]


def with_physkit(size: int, precision: str) -> dict:
    import physkit as pk

    del precision
    sim = pk.Simulation(
        pk.ETDRK2(pk.equations.VorticityTransport(VISCOSITY)),
        dt=step(size),
        adjoint=pk.adjoints.Direct(),
    )
    state = start(size)
    return timed(
        lambda w: pk.simulate(sim, state.replace(data=w), steps_for(size)).state.data,
        state.data,
        size,
    )


def with_exponax(size: int, precision: str) -> dict:
    import exponax
    import jax

    del precision
    stepper = exponax.stepper.NavierStokesVorticity(
        2, float(2 * jax.numpy.pi), size, step(size), diffusivity=VISCOSITY, order=2
    )
    loop = lambda u: jax.lax.fori_loop(0, steps_for(size), lambda i, w: stepper(w), u)
    return timed(loop, start(size).data[None], size)


def with_jax_cfd(size: int, precision: str) -> dict:
    return _jax_cfd(size, "crank_nicolson_rk2")


def with_jax_cfd_rk4(size: int, precision: str) -> dict:
    return _jax_cfd(size, "crank_nicolson_rk4")


def _jax_cfd(size: int, method: str) -> dict:
    import jax
    from jax_cfd.base import grids
    from jax_cfd.spectral import equations, time_stepping

    grid = grids.Grid((size, size), domain=((0, 2 * jax.numpy.pi),) * 2)
    equation = equations.NavierStokes2D(VISCOSITY, grid, smooth=True)
    advance = getattr(time_stepping, method)(equation, step(size))
    loop = lambda u: jax.lax.fori_loop(0, steps_for(size), lambda i, w: advance(w), u)
    found = timed(loop, jax.numpy.fft.rfft2(start(size).data), size)
    return found | {"note": found["note"] + " (of coefficients)"}


if __name__ == "__main__":
    print_measurement({
        "physkit": with_physkit, "exponax": with_exponax,
        "jax-cfd": with_jax_cfd, "jax-cfd-rk4": with_jax_cfd_rk4,
    })  # fmt: skip
