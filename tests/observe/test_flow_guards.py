"""Guards of flows: the cell that is not positive, and the Courant number above its limit."""

import jax.numpy as jnp
import pytest

import physkit as pk


def gas(cells=16):
    """A shock tube along x, whose pressure falls to a hundredth."""
    grid = pk.Grid(pk.Box([1.0, 1.0], (False, True)), (cells, 3))
    jump = lambda a, b: lambda x, y: jnp.where(x < 0.5, a, b) + 0 * y
    return pk.components.Gas.from_primitive(
        grid, jump(1.0, 0.1), (0.0, 0.0), jump(1.0, 0.01), 1.4, pk.boundaries.Outflow()
    )


def simulation(*guards, dt=0.01):
    return pk.Simulation(pk.Euler(pk.equations.CompressibleEuler(1.4)), dt=dt, guards=guards)


def simulation_of_component(*guards):
    return pk.Simulation(
        pk.Euler(pk.equations.CompressibleEuler(1.4, component="gas")), dt=0.06, guards=guards
    )


def test_positivity_guard_names_cell_and_step():
    message = (
        r"between steps .*PositivityGuard at step \d+: gas (density|internal energy) = .* "
        r"in cell \(\d+, \d\)"
    )
    with pytest.raises(pk.SimulationDiverged, match=message) as raised:
        pk.run(
            simulation_of_component(pk.guards.PositivityGuard()), {"gas": gas()}, 20, progress=False
        )
    assert "reduce dt" in str(raised.value)


def test_courant_limit_ends_a_run_before_it_diverges():
    with pytest.raises(
        pk.errors.StepSizeError, match=r"Courant number 1\.\d+, allowed 0.8: reduce dt"
    ):
        pk.run(simulation(pk.guards.CourantLimit(), dt=0.06), gas(), 20, progress=False)


def test_guards_hold_for_a_stable_flow():
    stable = simulation(
        pk.guards.PositivityGuard(2), pk.guards.CourantLimit(0.9, interval=2), dt=0.002
    )
    assert pk.run(stable, gas(), 4, progress=False).steps == 4


def test_guards_without_flow_quantities_are_refused():
    with pytest.raises(pk.errors.ComponentError, match="PositivityGuard"):
        pk.init(
            pk.Simulation(pk.RK4(lambda t, y: -y), dt=0.1, guards=pk.guards.PositivityGuard()),
            jnp.ones(2),
        )
    with pytest.raises(pk.errors.ParameterError, match="max_signal_rate"):
        pk.init(
            pk.Simulation(pk.RK4(lambda t, y: -y), dt=0.1, guards=pk.guards.CourantLimit()),
            jnp.ones(2),
        )
    with pytest.raises(pk.errors.ParameterError, match="positive"):
        pk.guards.CourantLimit(0.0)
