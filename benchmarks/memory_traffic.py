"""What a step of a stencil carries through memory, beside what it must: `python -m benchmarks.memory_traffic`.

For each case the numbers of a cell that one step must read and write, those that XLA's program reads and
writes by its own count (each loop by itself, as if no cache kept anything; of a large gas, which is
computed in slabs, that of one slab), the rate by the clock on all cores, and that rate as a share of what
the bandwidth allows with the least traffic; a copy of a large array shows the bandwidth. A share above a
half is within twice the bandwidth.
"""

import argparse
from collections.abc import Callable
from typing import Any

from benchmarks._harness import ALL_CORES, seconds

STEPS = 20


def copy_bandwidth(megabytes: int) -> float:
    """Bytes a second of y = x + 1 on arrays of that size."""
    import jax
    import jax.numpy as jnp

    x = jnp.zeros(megabytes * 2**18, jnp.float32)
    times = 20

    def advance(x):
        return jax.lax.fori_loop(0, times, lambda _, x: x + 1, x)

    compiled = jax.jit(advance, compiler_options=ALL_CORES).lower(x).compile()
    jax.block_until_ready(compiled(x))
    best = seconds(lambda: jax.block_until_ready(compiled(x)), 5)
    return 2 * x.nbytes * times / best


def light() -> tuple[Any, Any, int, int]:
    import jax.numpy as jnp

    import physkit as pk

    em, n = pk.electromagnetism, 128
    wave = {"Ez": lambda x, y, z: jnp.sin(2 * jnp.pi * x) + 0 * y + 0 * z}
    field = em.ElectromagneticField.of(pk.Grid([1.0] * 3, (n,) * 3), wave)
    # Each half of a step reads six components and writes three.
    return pk.Simulation(em.Yee(em.Maxwell()), dt=0.5 / n), field, n**3, 18


def gas() -> tuple[Any, Any, int, int]:
    import physkit as pk

    _, gas = pk.systems.kelvin_helmholtz(1024)
    law = pk.equations.CompressibleEuler(5 / 3)
    # Two stages of four fields; the second one reads the start, too.
    return pk.Simulation(pk.SSPRK2(law), dt=0.1 / 1024), gas, 1024**2, 2 * 8 + 4


def magnetized_gas() -> tuple[Any, Any, int, int]:
    import physkit as pk

    sim, gas = pk.systems.orszag_tang(1024)
    # Density, momentum and energy, and the field on three sides: eight fields.
    return pk.Simulation(sim.integrator, dt=0.0625 / 1024), gas, 1024**2, 2 * 16 + 8


def shallow_water() -> tuple[Any, Any, int, int]:
    import jax.numpy as jnp

    import physkit as pk

    n = 1024
    grid = pk.Grid([1.0, 1.0], (n, n))
    height = 1 + 0.1 * jnp.sin(2 * jnp.pi * jnp.arange(n) / n)[:, None] * jnp.ones(n)
    water = pk.components.CGridShallowWaterState.of(grid, height, (0 * height, 0 * height))
    flow = pk.equations.ShallowWater(1.0, coriolis=1.0)
    return pk.Simulation(pk.Euler(flow), dt=0.1 / n), water, n * n, 6


def flow() -> tuple[Any, Any, int, int]:
    import physkit as pk

    simulation, state = pk.systems.lid_driven_cavity(512)
    law = pk.equations.IncompressibleFlow(0.01)
    # Two stages of two components, each projected by transforms there and back along two axes.
    return pk.Simulation(pk.SSPRK2(law), dt=simulation.dt), state, 512**2, 2 * (4 + 8) + 2


def lattice() -> tuple[Any, Any, int, int]:
    import jax.numpy as jnp

    import physkit as pk

    n, lb = 1024, pk.lattice_boltzmann
    wave = [lambda x, y: 0.05 * jnp.sin(2 * jnp.pi * y / n) + 0 * x, 0.0]
    fluid = lb.Populations.of(pk.Grid([float(n)] * 2, (n, n)), 1.0, wave)
    law = lb.LatticeBoltzmann(0.1)
    return pk.Simulation(lb.StreamAndCollide(law), dt=1.0), fluid, n * n, 18


CASES: dict[str, Callable[[], tuple[Any, Any, int, int]]] = {
    f.__name__: f for f in (light, gas, magnetized_gas, shallow_water, flow, lattice)
}


def measure(case: str, bandwidth: float) -> dict[str, float]:
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import physkit as pk
    from physkit.core import cast_floats

    simulation, state, cells, least = CASES[case]()
    simulation = eqx.tree_at(
        lambda s: s.adjoint, simulation, pk.adjoints.Direct(), is_leaf=lambda x: x is None
    )
    simulation, state = cast_floats((simulation, state), jnp.dtype(jnp.float32))

    def program(steps: int):
        advance = lambda s: pk.simulate(simulation, s, steps).state
        return jax.jit(advance, compiler_options=ALL_CORES).lower(state).compile()

    compiled = program(STEPS)
    # A loop of one step is unrolled, so that this is the count of a step.
    moved = program(1).cost_analysis()["bytes accessed"] / 4 / cells
    jax.block_until_ready(compiled(state))
    best = seconds(lambda: jax.block_until_ready(compiled(state)), 5) / STEPS
    return {
        "least": least,
        "moved": moved,
        "rate": cells / best / 1e6,
        "share": 4 * least * cells / best / bandwidth,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", choices=[[], *CASES])
    cases = parser.parse_args().cases or CASES
    bandwidth = copy_bandwidth(256)
    print(
        f"copy of 256 MiB: {bandwidth / 1e9:.3g} GB/s; of 4 MiB: {copy_bandwidth(4) / 1e9:.3g} GB/s\n"
    )
    print(
        "| case | numbers a cell at least | by XLA's count | M cells/s | share of the bandwidth |"
    )
    print("|---|---|---|---|---|")
    for case in cases:
        row = measure(case, bandwidth)
        print(
            f"| {case} | {row['least']} | {row['moved']:.0f} | {row['rate']:.3g} | {row['share']:.2f} |"
        )


if __name__ == "__main__":
    main()
