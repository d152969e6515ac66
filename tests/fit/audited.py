"""Every system shipped, small enough for an audit; as a program it prints the table of all."""

import dataclasses
import sys
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit import systems
from physkit.fields import Field
from physkit.fields.equations import SphericalShallowWater
from physkit.fit import gradient_audit
from physkit.geometry import SphericalGrid
from physkit.integrators import ETDRK4
from physkit.observe import Every, FieldValues
from physkit.simulate import Simulation, simulate

KEY = jax.random.key(0)


def with_noise(made: tuple[Any, Any], steps: int = 0) -> tuple[Any, Any]:
    """A system after some steps, with noise of 2 % on its state: uniform flow is all kinks and ties."""
    sim, state = made
    rng = np.random.default_rng(0)

    def noisy(path, x):
        name = jax.tree_util.keystr(path)
        # Noise on the faces would give a magnetic field a divergence.
        # γ is noted in the gas, and is that of its equations.
        is_whole = any(part in name for part in ("space", ".magnetic_", ".gamma"))
        if is_whole or not eqx.is_inexact_array(x):
            return x
        still = 0.0 if steps else 1e-4 * (np.asarray(x) == 0) * rng.uniform(-1, 1, x.shape)
        return x * (1 + 0.02 * rng.uniform(-1, 1, x.shape)) + still

    if steps:
        state = simulate(dataclasses.replace(sim, observers=(), guards=()), state, steps).state
    return sim, jax.tree_util.tree_map_with_path(noisy, state)


def with_noise_before(made: tuple[Any, Any], steps: int) -> tuple[Any, Any]:
    """A system some steps after noise, which reaches a magnetic field through the flow, without divergence."""
    sim, state = with_noise(made)
    return sim, simulate(dataclasses.replace(sim, observers=(), guards=()), state, steps).state


def water_on_a_sphere() -> tuple[Any, Any]:
    """Of unit size: in m and s vorticity is 10⁻⁹ of the depth, and noise on the one field drowns it."""
    grid = SphericalGrid(1.0, 5)
    hills = Field.from_function(grid, lambda x, y: 0.1 * jnp.cos(x) * jnp.cos(y))
    law = SphericalShallowWater(1.0, 1.0, 1e-3, topography=hills)
    wind = lambda x, y: (jnp.cos(y), 0.1 * jnp.sin(2 * x) * jnp.cos(y))
    start = law.state(grid, wind, lambda x, y: 2 + 0.1 * jnp.sin(y))
    frames = Every(2, flow=FieldValues())
    return with_noise((Simulation(ETDRK4(law), dt=0.05, observers=frames), start))


def below_ground(made: tuple[Any, Any]) -> tuple[Any, Any]:
    """A blow inside of the solid, in motion: at the surface its place has a slope on one side only."""
    sim, state = made
    place = lambda s: s.integrator.equations.sources[0].position
    return with_noise((eqx.tree_at(place, sim, place(sim) - np.array([0.01, 0.07])), state))


def on_wet_ground(made: tuple[Any, Any]) -> tuple[Any, Any]:
    """Where nothing is, the coefficient of diffusion has a kink."""
    sim, state = made
    return sim, state.replace(data=state.data + 0.1)


def off_the_middle(made: tuple[Any, Any]) -> tuple[Any, Any]:
    """Where a surface runs through points of the grid, what it holds has a kink."""
    sim, state = made
    disk = state["disk"]
    place = disk.position + np.array([[0.0131, 0.0073, 0.0]])
    return sim, {**state, "disk": disk.replace(position=place)}


SYSTEMS = {
    "liquid_argon": lambda: systems.liquid_argon(4),
    "lennard_jones_melt": lambda: systems.lennard_jones_melt(4, cutoff=2.0),
    "double_well": lambda: systems.double_well(particles=4),
    "go_model": systems.go_model,
    "kob_andersen": lambda: systems.kob_andersen(4),
    "kremer_grest_melt": lambda: systems.kremer_grest_melt(5, cells=(5, 5, 4)),
    "water_box": lambda: systems.water_box(3, cutoff=0.4),
    "figure_eight": systems.figure_eight,
    "kepler": systems.kepler,
    "giant_planets": systems.giant_planets,
    "lorenz": systems.lorenz,
    "hare_and_lynx": systems.hare_and_lynx,
    "zeldovich_pancake": lambda: systems.zeldovich_pancake(count=16, cells=16),
    "particle_mesh_universe": lambda: systems.particle_mesh_universe(cells=4),
    "plasma_wave": lambda: systems.plasma_wave(count=64, cells=8),
    "landau_damping": lambda: systems.landau_damping(128),
    "two_stream": lambda: systems.two_stream(64, cells=8),
    "two_species_plasma": lambda: systems.two_species_plasma(particles=64, cells=8),
    "weibel_instability": lambda: systems.weibel_instability(cells=8, per_cell=1, amplitude=0.1),
    "particle_laden": lambda: systems.particle_laden_taylor_green(count=20, cells=8),
    "brusselator": lambda: systems.brusselator(cells=(8, 8)),
    "burgers_wave": lambda: systems.burgers_wave(cells=16),
    "fisher_front": lambda: systems.fisher_front(length=40.0, cells=32),
    "gray_scott": lambda: systems.gray_scott(cells=(12, 12)),
    "shallow water on a sphere": water_on_a_sphere,
    "rossby_haurwitz_wave": lambda: systems.rossby_haurwitz_wave(6, every=2),
    "baroclinic_channel": lambda: systems.baroclinic_channel((6, 6, 4), every=2),
    "baroclinic_turbulence": lambda: systems.baroclinic_turbulence(cells=12, every=2),
    "spinodal_decomposition": lambda: systems.spinodal_decomposition(cells=(12, 12)),
    "allen_cahn": lambda: systems.allen_cahn(cells=(12, 12), every=2),
    "swift_hohenberg": lambda: systems.swift_hohenberg(asymmetry=0.5, cells=(12, 12), every=2),
    "phase_field_crystal": lambda: systems.phase_field_crystal(cells=(12, 12), every=2),
    "complex_ginzburg_landau": lambda: systems.complex_ginzburg_landau(cells=(12, 12), every=2),
    "fitzhugh_nagumo": lambda: systems.fitzhugh_nagumo(cells=(12, 12), every=2),
    "keller_segel": lambda: systems.keller_segel(cells=(12, 12), every=2),
    "porous_medium": lambda: on_wet_ground(systems.porous_medium(cells=12, every=2)),
    "surface_quasi_geostrophic": lambda: systems.surface_quasi_geostrophic(
        resolution=12, peak=2.0, every=2
    ),
    "settling_disk": lambda: off_the_middle(systems.settling_disk(24, record=2)),
    "kuramoto_sivashinsky": lambda: systems.kuramoto_sivashinsky(cells=32),
    "kdv_solitons": lambda: systems.kdv_solitons(cells=64),
    "electromagnetic_cavity": lambda: systems.electromagnetic_cavity(cells=(6, 5, 4)),
    "dielectric_slab": lambda: systems.dielectric_slab(cells=16),
    "acoustic_monopole": lambda: systems.acoustic_monopole(cells=8),
    "elastic_half_space": lambda: below_ground(systems.elastic_half_space(cells=56)),
    "plucked_string": lambda: systems.plucked_string(cells=20),
    "taylor_green_2d": lambda: systems.taylor_green_2d(resolution=8),
    "taylor_green_3d": lambda: systems.taylor_green_3d(resolution=8),
    "decaying_turbulence": lambda: systems.decaying_turbulence(resolution=16, peak=3.0, key=KEY),
    "kolmogorov_flow": lambda: systems.kolmogorov_flow(resolution=16, key=KEY),
    "probed_flow": lambda: systems.probed_flow(resolution=16),
    "sedov": lambda: with_noise(systems.sedov(16)),
    "sod": lambda: with_noise(systems.sod(16)),
    "sound_wave": lambda: with_noise(systems.sound_wave(16, amplitude=0.1)),
    "kelvin_helmholtz": lambda: with_noise(systems.kelvin_helmholtz(8)),
    "jeans_wave": lambda: with_noise(systems.jeans_wave(16)),
    "viscous_shear": lambda: with_noise(systems.viscous_shear(8)),
    "brio_wu": lambda: with_noise_before(systems.brio_wu(16), 6),
    "orszag_tang": lambda: with_noise_before(systems.orszag_tang(8), 6),
    "lid_driven_cavity": lambda: systems.lid_driven_cavity(8),
    "cylinder_in_channel": lambda: systems.cylinder_in_channel(16),
    "convection_cell": lambda: systems.convection_cell(8, record=2),
    "lattice_cavity": lambda: systems.lattice_cavity(8),
    "lattice_convection": lambda: systems.lattice_convection(8, record=2),
    "shan_chen_droplet": lambda: systems.shan_chen_droplet(12, radius=3.0),
    "stommel_gyre": lambda: systems.stommel_gyre(8),
    "thacker_bowl": lambda: with_noise(systems.thacker_bowl(8), 10),
    "coherent_state": lambda: systems.coherent_state(cells=32),
    "tunneling": lambda: systems.tunneling(cells=256),
    "ising_quench": lambda: systems.ising_quench(4),
}


# A Courant number decides on a number of sub-steps; ground that is level everywhere is not read, nor are walls
# where there are none, the grid of hills, which is that of the state, the spin of a body in light, which stands
# still, and that of the shape of a body in a flow, whose density the flow alone asks for.
IGNORED = (
    "integrator.cfl", "terms[0].bed", "interaction.wall_density", "topography.grid", "shape.spin",
    "terms[1].bodies[0].fluid_density",
)  # fmt: skip


def audit(name: str, **options: Any):
    if name in (
        "double_well",
        "go_model",
        "kob_andersen",
        "kremer_grest_melt",
        "water_box",
    ):  # with noise
        options = {"key": KEY, **options}
    return gradient_audit(*SYSTEMS[name](), ignore=IGNORED, **options)


def line(name: str, found: Any, seconds: float) -> str:
    """One row of the table: how many leaves have which verdict, and the worst figures."""
    verdicts = [row.verdict for row in found.rows]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    orders = [row.order for row in found.rows if np.isfinite(row.order) and row.verdict == "right"]
    modes = max((row.mismatch for row in found.rows if np.isfinite(row.mismatch)), default=0.0)
    order = f"{min(orders):.2f}" if orders else "–"
    head = f"{name:22} {'ok ' if found.ok else 'NOT'} order ≥ {order}  modes ≤ {modes:.0e}"
    return f"{head}  {counts}  ({seconds:.0f} s)"


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_rank_promotion", "raise")
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    details = "-v" in sys.argv
    for name in [a for a in sys.argv[1:] if a != "-v"] or SYSTEMS:
        begin = time.perf_counter()
        try:
            found = audit(name)
        except Exception as error:
            print(f"{name:22} FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)
            continue
        print(line(name, found, time.perf_counter() - begin), flush=True)
        for row in found.rows:
            if details or row.verdict not in ("right", "unused"):
                print(f"    {row.name:50} {row.verdict:8} {row.order:5.2f} {row.note}", flush=True)
        if found.nan_origin:
            print("   ", found.nan_origin)
