"""Rigid bodies that a flow moves and that move the flow."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ComponentError, DeclarationError, ParameterError
from physkit.coupling import ImmersedBody, ImmersedMotion
from physkit.coupling.immersed._displaced_fluid import displaced_inertia
from physkit.fields import FlowState
from physkit.fields.equations import AbstractSolid, Ball, IncompressibleFlow
from physkit.geometry import Box, Grid, NoSlip
from physkit.integrators import ARS222, ARS343
from physkit.particles.forces import ExternalWrench
from physkit.testing import check_gradient, check_tendency

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = ("test_what_cannot_be_is_refused",)


def disk(mass=0.1, velocity=(0.0, 0.0, 0.0), spin=0.0, position=(0.5, 0.5, 0.0), radius=0.2):
    return pk.RigidBodies(
        [position],
        jnp.asarray([0.25, 0.25, 0.5]) * mass * radius**2,
        mass,
        velocity=[velocity],
        angular_velocity=[[0.0, 0.0, spin]],
    )


def setup(
    bodies, *, cells=(16, 16), periodic=True, nu=0.01, dt=0.01, force=(), method=ARS222, radius=0.2
):
    grid = Grid(Box([1.0, 1.0], periodic=periodic), cells)
    boundary = None if periodic else NoSlip()
    body = ImmersedBody(Ball([0.0, 0.0], radius), "bodies")
    terms = (
        IncompressibleFlow(nu, "flow", implicit=False, solids=(body,)),
        ImmersedMotion((body,), "flow", force),
    )
    sim = pk.Simulation(method(*terms), dt=dt)
    return sim, body.fill({"flow": FlowState.of(grid, boundary=boundary), "bodies": bodies}), body


def after(sim, state, steps):
    return jax.jit(lambda s: pk.simulate(sim, s, steps).state)(state)


def momentum(state, body, cells=(16, 16)):
    """Of all fluid, and of the body beyond the fluid in its place."""
    fluid = np.array([float(u.data.sum()) for u in state["flow"].velocity]) / math.prod(cells)
    bodies = state["bodies"]
    excess = float(bodies.mass[0]) - math.pi * 0.2**2
    return fluid + excess * np.asarray(bodies.velocity[0, :2])


def test_momentum_is_exchanged():
    """What the fluid gains the body loses, to rounding; the flow has no divergence."""
    sim, state, body = setup(disk(0.3, (0.2, -0.1, 0.0), 0.5))
    end = after(sim, state, 10)
    before, found = momentum(state, body), momentum(end, body)
    assert np.all(np.abs(end["bodies"].velocity[0, :2]) < np.abs(state["bodies"].velocity[0, :2]))
    np.testing.assert_allclose(found, before, atol=1e-15)
    assert float(jnp.max(jnp.abs(end["flow"].divergence().data))) < 1e-12
    place = np.asarray(end["bodies"].position[0])
    assert place[0] > 0.51
    assert place[1] < 0.495


@pytest.mark.slow
def test_added_mass():
    """A push on a disk in a fluid almost without friction accelerates the fluid around it, too: m + πR²ρ.

    The flow slips along the cells that the disk covers, and does not cling to it over more; `oscillating-disk`
    of the published numbers compares with Stokes'.
    """
    radius, push, mass = 0.1, 0.01, 0.1

    def pushed(t, bodies):
        return jnp.asarray([[push, 0.0, 0.0]]) + 0 * bodies.position, 0 * bodies.position

    force = ExternalWrench(pushed, component="bodies")
    sim, state, _ = setup(
        disk(mass, radius=radius), cells=(64, 64), nu=1e-7, dt=0.01, force=force, radius=radius,
        periodic=False,
    )  # fmt: skip
    end = after(sim, state, 10)
    fluid = push * 0.1 / float(end["bodies"].velocity[0, 0]) - mass
    # In a box five times as wide the fluid between has to come back.
    found = fluid / (math.pi * radius**2) - 2 * math.pi * radius**2
    assert found == pytest.approx(1, abs=0.08)


@pytest.mark.slow
def test_a_disk_in_a_shear_turns_with_it():
    """At small Re a free disk as heavy as the fluid turns by half the vorticity, and stays in the middle."""
    grid = Grid(Box([2.0, 1.0], periodic=(True, False)), (64, 32))
    sides = {"y": (NoSlip([-0.5, 0.0]), NoSlip([0.5, 0.0]))}
    flow = FlowState.of(grid, [lambda x, y: y - 0.5, 0.0], sides)
    radius = 0.1
    bodies = disk(math.pi * radius**2, spin=-0.5, position=(1.0, 0.5, 0.0), radius=radius)
    body = ImmersedBody(Ball([0.0, 0.0], radius), "bodies")
    terms = (
        IncompressibleFlow(1.0, "flow", implicit=False, solids=(body,)),
        ImmersedMotion((body,), "flow"),
    )
    state = body.fill({"flow": flow, "bodies": bodies})
    end = after(pk.Simulation(ARS222(*terms), dt=2e-4), state, 500)["bodies"]
    assert float(end.angular_velocity[0, 2]) == pytest.approx(-0.5, rel=0.04)
    np.testing.assert_allclose(end.position[0], [1.0, 0.5, 0.0], atol=1e-6)


@pytest.mark.compiled_quickly
@pytest.mark.slow
def test_a_ball_in_space_and_other_shapes():
    class Ellipsoid(AbstractSolid):
        """Twice as long as wide."""

        def distance(self, t, x):
            r = jnp.sqrt((x[0] / 0.3) ** 2 + (x[1] / 0.15) ** 2 + (x[2] / 0.15) ** 2 + 1e-12)
            return (r - 1) * 0.18

    grid = Grid([1.0, 1.0, 1.0], (12, 12, 12))
    turned = pk.components.random_orientations(3, 1)
    bodies = pk.RigidBodies(
        [[0.5, 0.4, 0.6]], [1e-3, 2e-3, 2e-3], 0.06, orientation=turned,
        velocity=[[0.1, 0.0, 0.2]], angular_velocity=[[0.3, 0.2, -0.5]],
    )  # fmt: skip
    body = ImmersedBody(Ellipsoid(), "bodies")
    terms = (
        IncompressibleFlow(0.02, "flow", implicit=False, solids=(body,)),
        ImmersedMotion((body,), "flow"),
    )
    state = body.fill({"flow": FlowState.of(grid), "bodies": bodies})
    end = after(pk.Simulation(ARS343(*terms), dt=0.02), state, 10)
    # Twelve cells, and a distance that is not quite one.
    volume = float(displaced_inertia(body.place(state, grid))[0, 0])
    assert volume == pytest.approx(4 / 3 * math.pi * 0.3 * 0.15**2, rel=0.1)
    np.testing.assert_allclose(
        *(
            [float(u.data.sum()) / 12**3 for u in s["flow"].velocity]
            + (0.06 - volume) * np.asarray(s["bodies"].velocity[0])
            for s in (end, state)
        ),
        atol=1e-14,
    )
    assert float(end["bodies"].kinetic_energies()[0]) < float(bodies.kinetic_energies()[0])
    assert float(jnp.max(jnp.abs(end["flow"].divergence().data))) < 1e-12
    # Turned the other way about with all that turns with it, the flow is the same, seen from there.
    swapped = bodies.replace(velocity=-bodies.velocity)
    other = after(
        pk.Simulation(ARS343(*terms), dt=0.02),
        body.fill({"flow": FlowState.of(grid), "bodies": swapped}),
        10,
    )
    assert float(other["bodies"].velocity[0, 0]) < 0


@pytest.mark.slow
def test_battery():
    """Off the symmetry of the grid: where cells lie at equal distances, shares of cells have kinks."""
    bodies = disk(0.3, (0.2, -0.1, 0.0), 0.5, position=(0.47, 0.53, 0.0), radius=0.213)
    _, state, body = setup(bodies, cells=(8, 8), radius=0.213)

    def pushed(t, bodies):
        return 0.3 * bodies.velocity + 0.1, 0.2 * bodies.angular_velocity

    push = ExternalWrench(pushed, component="bodies")
    # The shape moves with its body, not by itself; the density of the fluid is what the flow presses with.
    ignore = ("shape.speed", "shape.spin", "fluid_density")
    check_tendency(ImmersedMotion((body,), "flow", push), state, ignore=ignore)


@pytest.mark.compiled_quickly
@pytest.mark.slow
def test_gradients_of_a_coupled_step():
    """By mass, speed, spin, radius, viscosity: through body, flow and back."""

    def final(at):
        bodies = disk(at["mass"], spin=0.4, position=(0.47, 0.53, 0.0)).replace(
            velocity=at["velocity"]
        )
        sim, state, _ = setup(bodies, cells=(8, 8), nu=at["nu"], dt=0.02, radius=at["radius"])
        end = pk.simulate(sim, state, 2).state
        return [u.data for u in end["flow"].velocity], end["bodies"].velocity

    at = {
        "mass": jnp.asarray(0.3), "velocity": jnp.asarray([[0.2, 0.1, 0.0]]),
        "nu": jnp.asarray(0.01), "radius": jnp.asarray(0.213),
    }  # fmt: skip
    check_gradient(final, at, directions=1)


def test_what_cannot_be_is_refused():
    def start(bodies, *terms, state=None):
        sim, made, _ = setup(bodies)
        if terms:
            sim = pk.Simulation(ARS222(*terms), dt=0.01)
        return pk.init(sim, made if state is None else state)

    with pytest.raises(ParameterError, match=r"of the mass of the fluid"):
        start(disk(0.05))
    _, state, body = setup(disk())
    flow = IncompressibleFlow(0.01, "flow", implicit=False, solids=(body,))
    with pytest.raises(DeclarationError, match="here nothing moves them"):
        start(disk(), flow)
    newton = pk.integrators.EquationsOfMotion(
        ExternalWrench(lambda t, b: (0 * b.position, 0 * b.position), component="bodies")
    )
    with pytest.raises(DeclarationError, match="EquationsOfMotion moves them"):
        start(disk(), flow, newton)
    moving = disk(0.3, (0.5, 0.0, 0.0))
    with pytest.raises(ParameterError, match=r"start from body\.fill"):
        start(moving, state={**state, "bodies": moving})
    with pytest.raises(ComponentError, match="one of RigidBodies"):
        start(disk(), state={**state, "bodies": pk.Particles([[0.5, 0.5]])})
    with pytest.raises(ParameterError, match="covers no point"):
        start(disk(), state={**state, "bodies": disk(position=(3.5, 0.5, 0.0))} | {
            "flow": FlowState.of(Grid(Box([1.0, 1.0], periodic=False), (8, 8)), boundary=NoSlip())
        })  # fmt: skip
    lattice = pk.lattice_boltzmann
    grid = Grid([1.0, 1.0], (8, 8))
    fluid = lattice.Populations.of(grid, 0.01)
    with pytest.raises(DeclarationError, match="is where the state has it"):
        pk.simulate(
            pk.Simulation(
                lattice.StreamAndCollide(lattice.LatticeBoltzmann(0.05, solids=(body,))), dt=0.01
            ),
            fluid,
            1,
        )
