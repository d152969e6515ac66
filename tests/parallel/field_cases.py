"""Small cases of every field system, run on one device and over several, and their differences."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk
from physkit import systems
from physkit.core import replace_fields
from physkit.coupling import ImmersedBody, ImmersedMotion
from physkit.fields import FlowState
from physkit.fields.equations import (
    Ball,
    BodyForce,
    GravityWaves,
    IncompressibleFlow,
    ScalarTransport,
    Smagorinsky,
)
from physkit.geometry import Box, Dirichlet, Grid, Mirror, Neumann, NoSlip, Outflow, Robin
from physkit.integrators import ARS222, Euler, Strang
from physkit.particles.forces import ExternalWrench

Case = Callable[[], tuple[Any, Any, int]]  # → simulation, state, steps

LINES = [(1,), (2,), (4,)]
PLANES = [(1, 1), (2, 1), (1, 2), (2, 2), (4, 1)]
SPACES = [(1, 1), (2, 1), (2, 2), (4, 1), (1, 1, 2), (2, 2, 2)]


def gravity_waves(periodic=(True, False), cells=(16, 8)) -> tuple[Any, Any, int]:
    """Waves of small amplitude on a staggered grid, between walls along some axes."""
    names = ("u", "v", "w")[: len(cells)]
    grid = Grid(Box([1.0, 2.0, 1.5][: len(cells)], periodic=periodic), cells)
    walls = [k for k, wraps in enumerate(periodic) if not wraps]
    bump = lambda *x: sum(jnp.sin(2 * jnp.pi * c) for c in x) * 0.01
    state = {
        "elevation": pk.Field.from_function(
            grid, bump, boundary={k: Neumann(0.0) for k in walls} or None
        )
    }
    for k, name in enumerate(names):
        sides = {j: Dirichlet(0.0) if j == k else Neumann(0.0) for j in walls} or None
        state[name] = pk.Field(0.0, grid, grid.face(k), sides)
    waves = GravityWaves(1.0, 1.0, velocity=names)
    sim = pk.Simulation(Strang(Euler(waves.kick), Euler(waves.drift)), dt=0.01)
    return sim, state, 5


def open_channel() -> tuple[Any, Any, int]:
    """A flow in at one end and out at the other, with a body force and a scalar."""
    grid = Grid(Box([2.0, 1.0], periodic=False), (16, 8))
    sides = {"x": (Dirichlet([1.0, 0.0]), Outflow()), "y": (NoSlip(), Mirror())}
    flow = FlowState.of(grid, [lambda x, y: 1 + 0.1 * jnp.sin(3 * x * y), 0.1], sides)
    dye = pk.Field.from_function(
        grid, lambda x, y: jnp.cos(3 * x) * y, boundary={"x": Outflow(), "y": Neumann(0.1)}
    )
    body = Ball([0.6, 0.4], 0.2, speed=[0.3, 0.0], spin=2.0)
    terms = (
        IncompressibleFlow(0.05, component="flow", implicit=False, solids=(body,)),
        ScalarTransport(0.1, component="dye"),
        BodyForce((0.1, -0.2), component="flow"),
        Smagorinsky(0.2, component="flow"),
    )
    return pk.Simulation(ARS222(*terms), dt=0.01), {"flow": flow, "dye": dye}, 4


def _short(built: tuple[Any, Any], steps: int) -> tuple[Any, Any, int]:
    """A system without the observers whose interval does not divide `steps`."""
    sim, state = built
    if steps % sim.observation_period:
        observers = tuple(o for o in sim.observers if not steps % (o.interval or 1))
        sim = replace_fields(sim, {"observers": observers})
    return sim, state, steps


def _break_symmetry(built: tuple[Any, Any, int]) -> tuple[Any, Any, int]:
    """Perturb the fields: limiters have kinks where slopes are equal; rounding chooses the derivative there.

    (That of a symmetric sound wave on *one* device changes by 10 % when its numbers change by 1e-15.)
    """
    sim, state, steps = built
    rng = np.random.default_rng(0)

    def is_field(x):
        return isinstance(x, pk.Field)

    def perturb(x):
        if not is_field(x) or not x.data.ndim:
            return x
        return x.replace(data=x.data * (1 + 1e-3 * rng.standard_normal(x.data.shape)))

    return sim, jax.tree.map(perturb, state, is_leaf=is_field), steps


def magnetized(periodic, cells) -> tuple[Any, Any, int]:
    """A gas that conducts, of random numbers, between walls that conduct and an open side."""
    rng = np.random.default_rng(0)
    grid = Grid(Box([1.0 + 0.2 * k for k in range(len(cells))], periodic), cells)
    draw = lambda a, b: jnp.asarray(a + b * rng.uniform(-1, 1, cells))
    sides = {k: (Mirror(), Outflow()) for k, wraps in enumerate(periodic) if not wraps}
    walls = [k for k, wraps in enumerate(periodic) if not wraps]

    def bumps(*x):
        waves = sum(jnp.cos(2 * jnp.pi * c / (1 + 0.2 * k)) for k, c in enumerate(x))
        # On walls it is constant, so that no field passes through them.
        return 0.05 * waves * math.prod(jnp.sin(jnp.pi * x[k] / (1 + 0.2 * k)) ** 2 for k in walls)

    gas = pk.components.MagnetizedGas.from_primitive(
        grid, draw(1.0, 0.2), tuple(draw(0.1, 0.3) for _ in range(3)), draw(1.0, 0.2), gamma=5 / 3,
        vector_potential={"x": bumps, "y": bumps, "z": bumps}, boundary=sides or None,
    )  # fmt: skip
    return pk.Simulation(pk.SSPRK2(pk.equations.IdealMHD(5 / 3)), dt=0.01), gas, 3


def orszag_tang() -> tuple[Any, Any, int]:
    """The vortex on the same random gas: where slopes are equal limiters have kinks."""
    _, gas, _ = magnetized((True, True), (16, 16))
    return _short(systems.orszag_tang(cells=16), 3)[0], gas, 3


def brio_wu() -> tuple[Any, Any, int]:
    """Its equations on a random gas between open ends."""
    _, gas, _ = magnetized((False,), (32,))
    sim, _, steps = _short(systems.brio_wu(cells=32, gamma=5 / 3), 4)
    return sim, gas, steps


def phases_between_walls() -> tuple[Any, Any, int]:
    """A free energy, and fluxes through faces, between walls."""
    grid = Grid(Box([16.0, 8.0], periodic=(True, False)), (16, 8))
    law = pk.equations.CahnHilliard(scheme=pk.schemes.Central())
    porous = pk.equations.NonlinearDiffusion(pk.equations.PowerLaw(0.1, 2.0))
    watch = pk.Every(4, phi=pk.FieldValues(), F=pk.quantities.FreeEnergy())
    sim = pk.Simulation(pk.RK4(law, porous), dt=0.01, observers=watch)
    start = pk.Field.from_function(
        grid, lambda x, y: 0.3 * jnp.sin(0.7 * x + y), boundary=Neumann()
    )
    return sim, start, 8


def diffusion_between_walls() -> tuple[Any, Any, int]:
    """A coefficient that varies, solved for by conjugate gradients, with exchange at walls."""
    grid = Grid(Box([1.0, 0.5], periodic=False), (16, 8))
    x, y = grid.coordinates()
    sides = {"x": (Dirichlet(lambda t, x, y: jnp.cos(t) + 0 * y), Robin(2.0, 0.6)), "y": Robin(1.0)}
    law = pk.equations.VariableDiffusion(1 + 0.5 * jnp.sin(3 * x + y))
    start = pk.Field.from_function(grid, lambda x, y: jnp.cos(3 * x) * y, boundary=sides)
    return pk.Simulation(ARS222(law), dt=0.02), start, 3


def disk_beside_a_wall() -> tuple[Any, Any, int]:
    """The disk that settles, which on all devices is whole; off the middle, and turning."""
    sim, state, steps = _short(systems.settling_disk(cells=16, record=2), 4)
    disk = state["disk"]
    # No point of the grid is at its surface at first: the nearer, the more friction makes of rounding.
    moved = disk.position + jnp.asarray([[0.25, 0.01, 0.0]])
    # What turns it is a small difference of large numbers: it is compared beside what it turns with.
    spin = jnp.asarray([[0.0, 0.0, 5e-3]])
    disk = disk.replace(position=moved, angular_momentum=spin)
    return sim, ImmersedBody(Ball([0.0, 0.0], 0.125), "disk").fill({**state, "disk": disk}), steps


def disks_in_slabs() -> tuple[Any, Any, int]:
    """Two disks in a box that repeats, cut into slabs, one of which it leaves."""
    grid = Grid([1.0, 0.5], (32, 16))
    disks = pk.RigidBodies(
        [[0.249, 0.25, 0.0], [0.7, 0.2, 0.0]], [0.01, 0.01, 0.02], jnp.asarray([0.08, 0.1]),
        Box([1.0, 0.5, 1.0]), velocity=[[1.0, 0.1, 0.0], [-0.3, 0.0, 0.0]],
        angular_velocity=[0.0, 0.0, 0.5],
    )  # fmt: skip
    solids = tuple(ImmersedBody(Ball([0.0, 0.0], 0.12), "disks", k) for k in range(2))
    state = {"flow": FlowState.of(grid), "disks": disks}
    for solid in solids:
        state = solid.fill(state)
    push = ExternalWrench(
        lambda t, bodies: (0 * bodies.position + 0.3, 0 * bodies.position + 0.01), component="disks"
    )
    terms = (
        IncompressibleFlow(0.02, "flow", implicit=False, solids=solids),
        ImmersedMotion(solids, "flow", push),
    )
    watch = pk.Every(2, position=pk.Positions("disks"))
    return pk.Simulation(ARS222(*terms), dt=0.005, observers=watch), state, 4


def learned_flow() -> tuple[Any, Any, int]:
    """Vorticity with a Fourier neural operator: modes that are sharded along one axis or the other."""
    sim, state, steps = _short(systems.kolmogorov_flow(resolution=16, every=2), 4)
    network = pk.equations.FourierNeuralOperator(1, (4, 3), width=3, depth=2, key=0)
    flow = pk.ETDRK2(pk.equations.VorticityTransport(0.01, 0.1), network)
    return replace_fields(sim, {"integrator": flow}), state, steps


# Waves and winds are strong: otherwise the comparison would be of the rounding of a large constant.
LINE: dict[str, Case] = {
    "burgers_wave": lambda: _short(systems.burgers_wave(cells=32, every=4), 8),
    "fisher_front": lambda: _short(systems.fisher_front(cells=64, length=16.0, every=4), 8),
    "kdv_solitons": lambda: _short(systems.kdv_solitons(cells=64, every=4), 8),
    "kuramoto_sivashinsky": lambda: _short(systems.kuramoto_sivashinsky(cells=64, every=4), 8),
    "dielectric_slab": lambda: _short(systems.dielectric_slab(cells=40), 200),
    "plucked_string": lambda: _short(systems.plucked_string(cells=32, every=4), 8),
    "coherent_state": lambda: _short(systems.coherent_state(cells=32), 5),
    "tunneling": lambda: _short(systems.tunneling(cells=64, length=64.0, every=4), 8),
    "sound_wave": lambda: _break_symmetry(_short(systems.sound_wave(cells=32, amplitude=0.01), 4)),
    "sod": lambda: _break_symmetry(_short(systems.sod(cells=32), 4)),
    "sedov": lambda: _break_symmetry(_short(systems.sedov(cells=64), 4)),
    "disks_in_slabs": disks_in_slabs,
    "jeans_wave": lambda: _break_symmetry(_short(systems.jeans_wave(cells=32, amplitude=0.01), 4)),
    "brio_wu": brio_wu,
}
PLANE: dict[str, Case] = {
    "gray_scott": lambda: _short(systems.gray_scott(cells=(16, 8), every=4), 8),
    "brusselator": lambda: _short(systems.brusselator(cells=(16, 8), every=4), 8),
    "spinodal_decomposition": lambda: _short(
        systems.spinodal_decomposition(cells=(16, 8), every=4), 8
    ),
    "allen_cahn": lambda: _short(systems.allen_cahn(cells=(16, 8), every=2), 4),
    "swift_hohenberg": lambda: _short(systems.swift_hohenberg(cells=(16, 8), every=2), 4),
    "phase_field_crystal": lambda: _short(systems.phase_field_crystal(cells=(16, 8), every=2), 4),
    "complex_ginzburg_landau": lambda: _short(
        systems.complex_ginzburg_landau(cells=(16, 8), every=2), 4
    ),
    "fitzhugh_nagumo": lambda: _short(systems.fitzhugh_nagumo(cells=(16, 8), every=2), 4),
    "keller_segel": lambda: _short(systems.keller_segel(cells=(16, 8), every=2), 4),
    "porous_medium": lambda: _break_symmetry(_short(systems.porous_medium(cells=16, every=2), 4)),
    "surface_quasi_geostrophic": lambda: _short(
        systems.surface_quasi_geostrophic(resolution=16, peak=3.0, every=2), 4
    ),
    "lattice_convection": lambda: _short(systems.lattice_convection(16, record=2), 4),
    "diffusion between walls": diffusion_between_walls,
    "baroclinic_turbulence": lambda: _short(systems.baroclinic_turbulence(cells=16, every=4), 8),
    "phases between walls": phases_between_walls,
    "sedov in the plane": lambda: _break_symmetry(
        _short(systems.sedov(cells=16, dimension=2, steps=20), 4)
    ),
    "kelvin_helmholtz": lambda: _break_symmetry(_short(systems.kelvin_helmholtz(cells=16), 3)),
    "open_channel": open_channel,
    "viscous_shear": lambda: _break_symmetry(_short(systems.viscous_shear(cells=16), 2)),
    "orszag_tang": orszag_tang,
    "conducting box": lambda: magnetized((True, False), (8, 8)),
    "convection_cell": lambda: _short(systems.convection_cell(cells=16, record=2), 4),
    "stommel_gyre": lambda: _break_symmetry(_short(systems.stommel_gyre(cells=16, wind=1e-2), 6)),
    "thacker_bowl": lambda: _break_symmetry(_short(systems.thacker_bowl(cells=16), 4)),
    "taylor_green_2d": lambda: _short(systems.taylor_green_2d(resolution=16, every=2), 4),
    "decaying_turbulence": lambda: _short(
        systems.decaying_turbulence(viscosity=1e-3, resolution=16, peak=3.0, every=2), 4
    ),
    "kolmogorov_flow": lambda: _short(systems.kolmogorov_flow(resolution=16, every=2), 4),
    "learned_flow": learned_flow,
    "shan_chen_droplet": lambda: _short(systems.shan_chen_droplet(cells=16, radius=4.0), 4),
    "gravity_waves": gravity_waves,
    # Cut along x and y only.
    "baroclinic_channel": lambda: _short(systems.baroclinic_channel((8, 8, 4), every=2), 4),
    "barotropic_jet": lambda: _short(systems.barotropic_jet(10, every=2), 4),
    "mountain_flow": lambda: _short(systems.mountain_flow(9, every=2), 4),
    "rossby_haurwitz_wave": lambda: _short(systems.rossby_haurwitz_wave(10, every=2), 4),
    "settling_disk": disk_beside_a_wall,
    "elastic_half_space": lambda: _short(systems.elastic_half_space(cells=80), 8),
}
SPACE: dict[str, Case] = {
    "taylor_green_3d": lambda: _short(systems.taylor_green_3d(100.0, resolution=16, every=2), 4),
    "sedov in space": lambda: _break_symmetry(
        _short(systems.sedov(cells=8, dimension=3, steps=20), 2)
    ),
    "magnetized gas in space": lambda: magnetized((True, True, False), (8, 8, 8)),
    "acoustic_monopole": lambda: _short(systems.acoustic_monopole(cells=16), 8),
    "gravity_waves in space": lambda: gravity_waves((True, False, True), (8, 8, 8)),
}
SYSTEMS: dict[str, tuple[Case, list[tuple[int, ...]]]] = {
    **{name: (case, LINES) for name, case in LINE.items()},
    **{name: (case, PLANES) for name, case in PLANE.items()},
    **{name: (case, SPACES) for name, case in SPACE.items()},
}

# Grids of devices for gradients, by the number of grids of a system.
GRADIENT_GRIDS = {len(LINES): [(4,)], len(PLANES): [(2, 2)], len(SPACES): [(2, 2, 2)]}


def distance(a: Any, b: Any) -> float:
    """The largest difference of any array, relative to the largest number in it; 0 for equal bits."""
    worst = 0.0
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape
        if x.size and np.issubdtype(x.dtype, np.inexact):
            assert np.isfinite(x).all(), "not finite"
            assert np.isfinite(y).all(), "not finite"
            size = np.abs(x).max()
            worst = max(worst, float(np.abs(x - y).max() / (size if size > 0 else 1.0)))
    return worst


def on_one_device(case: Case) -> Any:
    """State and frames of one device."""
    sim, state, steps = case()
    result = jax.jit(lambda s: pk.simulate(sim, s, steps))(state)
    return result.state, result.frames


def over_devices(case: Case, devices: tuple[int, ...]) -> Any:
    """State and frames of several."""
    sim, state, steps = case()
    done = pk.simulate(sim, state, steps, devices=devices)
    jax.block_until_ready(done.carry)
    done.health.check()
    return done.state, done.frames


def gradient(case: Case, devices: tuple[int, ...] | None) -> Any:
    """The derivative of a weighted sum of the last state by every number of simulation and state."""
    sim, state, steps = case()
    numbers, rest = eqx.partition((sim, state), eqx.is_inexact_array)

    def outcome(numbers):
        sim, state = eqx.combine(numbers, rest)
        done = pk.simulate(sim, state, steps, devices=devices)
        return sum(
            _weighted_sum(x) for x in jax.tree.leaves(eqx.filter(done.state, eqx.is_inexact_array))
        )

    gradient_of_outcome = jax.grad(outcome)
    function = jax.jit(gradient_of_outcome) if devices is None else gradient_of_outcome
    return jax.block_until_ready(function(numbers))


def _weighted_sum(x: jax.Array) -> jax.Array:
    weights = jnp.cos(jnp.arange(x.size, dtype=jnp.finfo(x.dtype).dtype)).reshape(x.shape)
    return jnp.sum(weights * (x.real + x.imag if jnp.iscomplexobj(x) else x))
