"""What observers and guards say of components in which nothing moves, of several grids, of replicas."""

import jax.numpy as jnp
import pytest

import physkit as pk


def test_the_temperature_of_what_cannot_move_is_zero():
    wall = pk.Particles(jnp.eye(3), frozen=[True] * 3)
    ball = pk.Particles(jnp.ones((4, 3)), jnp.ones((4, 3)))
    trap = pk.VelocityVerlet(pk.HarmonicTrap(1.0, component="ball"))
    found = pk.evaluate(
        pk.Simulation(trap, dt=0.01), {"ball": ball, "wall": wall}, T=pk.Temperature("wall")
    )
    assert found["T"] == 0


@pytest.mark.parametrize(
    ("wall", "sees_wall"), [("a", False), ("z", False), ("a", True), ("z", True)]
)
def test_a_wall_takes_up_momentum_where_forces_act_on_it(wall, sees_wall):
    """Whatever the components are called, temperatures count as thermostats do."""
    rows = jnp.eye(3)
    names = ["m", wall] if sees_wall else ["m"]
    force = pk.forces.SiteForce(pk.Pairwise(pk.LennardJones(), 2.5), component=names)
    state = {"m": pk.Particles(rows, rows), wall: pk.Particles(2 + rows, frozen=[True] * 3)}
    found = pk.evaluate(
        pk.Simulation(pk.VelocityVerlet(force), dt=0.01),
        state,
        T=pk.Temperature(),
        K=pk.KineticEnergy(),
    )
    kinetic = float(found["K"])
    assert float(found["T"]) == pytest.approx(2 * kinetic / (9 if sees_wall else 6), rel=1e-6)


def test_a_positivity_guard_looks_at_one_grid():
    def gas(n):
        grid = pk.Grid(pk.Box([1.0]), (n,))
        return pk.components.Gas.from_primitive(grid, 1.0, (0.0,), 1.0, 1.4)

    law = pk.equations.CompressibleEuler(1.4, component="a")
    guard = pk.guards.PositivityGuard()
    simulation = pk.Simulation(pk.Euler(law), dt=1e-3, guards=(guard,))
    with pytest.raises(pk.errors.ObserverError, match=r"PositivityGuard\(component='b'\)"):
        pk.init(simulation, {"a": gas(8), "b": gas(4)})


def test_an_observer_of_replicas_needs_what_that_of_one_needs():
    correlation = pk.observers.VelocityAutocorrelation(1, lags=4)
    for observer in (correlation, pk.Every(1, T=pk.Temperature())):
        of_all = pk.observe.PerReplica(observer)
        assert of_all.needs_equal_times is observer.needs_equal_times
