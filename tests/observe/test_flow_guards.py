"""Guards of flows: where something was not positive, and by how much a step is too long."""

import jax.numpy as jnp
import pytest

import physkit as pk


def gas(cells=16):
    grid = pk.Grid(pk.Box([1.0, 1.0], (False, True)), (cells, 3))
    jump = lambda a, b: lambda x, y: jnp.where(x < 0.5, a, b) + 0 * y
    return pk.components.Gas.from_primitive(
        grid, jump(1.0, 0.1), (0.0, 0.0), jump(1.0, 0.01), 1.4, pk.boundaries.Outflow()
    )


def sim(*guards, dt=0.01):
    return pk.Simulation(pk.Euler(pk.equations.CompressibleEuler(1.4)), dt=dt, guards=guards)


def test_positivity_guard_names_cell_and_step():
    message = (
        r"between steps .*PositivityGuard at step \d+: gas (density|internal energy) = .* "
        r"in cell \(\d+, \d\)"
    )
    with pytest.raises(pk.SimulationDiverged, match=message) as caught:
        pk.run(sim_of_named(pk.guards.PositivityGuard()), {"gas": gas()}, 20, progress=False)
    assert "reduce dt" in str(caught.value)


def sim_of_named(*guards):
    return pk.Simulation(
        pk.Euler(pk.equations.CompressibleEuler(1.4, component="gas")), dt=0.06, guards=guards
    )


def test_courant_limit_ends_a_run_before_it_diverges():
    with pytest.raises(
        pk.errors.StepSizeError, match=r"Courant number 1\.\d+, allowed 0.8: reduce dt"
    ):
        pk.run(sim(pk.guards.CourantLimit(), dt=0.06), gas(), 20, progress=False)


def test_guards_hold_for_a_stable_flow():
    quiet = sim(pk.guards.PositivityGuard(2), pk.guards.CourantLimit(0.9, interval=2), dt=0.002)
    assert pk.run(quiet, gas(), 4, progress=False).steps == 4


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
