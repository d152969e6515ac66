"""Convection in a layer of 2n × n/2 cells, hot below, cold above, walls all around. Steps per CPU second.

`--size` n; ν and the diffusivity of heat are 10⁻³, dt half of what a speed of 1 takes to pass a cell. Methods
and tolerances are those of `cavity`. physkit solves for the diffusion of heat, too. jax-cfd has no scalar in
its flows.
"""

from collections.abc import Callable

from benchmarks._harness import print_measurement
from benchmarks.cavity import VISCOSITY, run_phiflow, run_physkit


def with_physkit(size: int, precision: str) -> dict:
    import physkit as pk

    grid = pk.Grid(pk.Box([4.0, 1.0], periodic=False), (2 * size, size // 2))
    sides = pk.boundaries
    hot = {"x": sides.Neumann(0.0), "y": (sides.Dirichlet(1.0), sides.Dirichlet(0.0))}
    state = {
        "flow": pk.components.FlowState.of(grid, boundary=sides.NoSlip()),
        "heat": pk.Field.from_function(grid, lambda x, y: 1 - y + 0 * x, boundary=hot),
    }
    terms = (
        pk.equations.IncompressibleFlow(VISCOSITY, component="flow"),
        pk.equations.ScalarTransport(VISCOSITY, component="heat"),
        pk.equations.Buoyancy([0.0, 1.0], scalar="heat"),
    )
    simulation = pk.Simulation(pk.integrators.ARS222(*terms), dt=1 / size)
    return run_physkit(simulation, state, precision)


def with_phiflow(tolerance: float) -> Callable[[int, str], dict]:
    return lambda size, precision: run_phiflow(size, precision, tolerance, heated=True)


if __name__ == "__main__":
    print_measurement(
        {
            "physkit": with_physkit,
            "phiflow": with_phiflow(1e-3),
            "phiflow-1e-5": with_phiflow(1e-5),
        }
    )
