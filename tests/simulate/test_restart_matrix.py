"""Every integrator, and systems of every kind: resumed at five cut points, the same bits."""

import dataclasses
import inspect

import jax
import jax.numpy as jnp
import pytest

import physkit.systems as systems
from physkit.fields import Field
from physkit.fields.equations import Burgers, CompressibleEuler, Diffusion, Schroedinger, Wave
from physkit.geometry import Grid
from physkit.integrators import (
    ARS222,
    ARS343,
    ETDRK2,
    ETDRK4,
    SSPRK2,
    BackwardEuler,
    Boris,
    CFLSubsteps,
    CrankNicolson,
    ExactLinear,
    ExactWave,
    PotentialPropagator,
    SplitStep,
    Strang,
)
from physkit.simulate import Simulation, run
from physkit.testing import check_equal
from tests.testing.test_shipped_integrators import (
    INTEGRATORS,
    WITH_FIELDS,
    state_for,
)

RESUMED_AT, STEPS = (1, 3, 4, 7, 11), 12

# Small, but with everything that is carried.
SYSTEMS = {
    "brusselator": lambda: systems.brusselator(cells=(8, 8), key=jax.random.key(0)),
    "burgers_wave": lambda: systems.burgers_wave(cells=16),
    "coherent_state": lambda: systems.coherent_state(cells=16),
    "convection_cell": lambda: systems.convection_cell(cells=8),
    "cylinder_in_channel": lambda: systems.cylinder_in_channel(cells=12),
    "decaying_turbulence": lambda: systems.decaying_turbulence(resolution=16, peak=3.0),
    "go_model": systems.go_model,
    "kob_andersen": lambda: systems.kob_andersen(4),
    "kremer_grest_melt": lambda: systems.kremer_grest_melt(5, cells=(5, 5, 4)),
    "water_box": lambda: systems.water_box(3, cutoff=0.4),
    "acoustic_monopole": lambda: systems.acoustic_monopole(cells=8),
    "elastic_half_space": lambda: systems.elastic_half_space(cells=56),
    "dielectric_slab": lambda: systems.dielectric_slab(cells=12),
    "electromagnetic_cavity": lambda: systems.electromagnetic_cavity(cells=(6, 5, 4)),
    "figure_eight": systems.figure_eight,
    "fisher_front": lambda: systems.fisher_front(cells=16),
    "giant_planets": systems.giant_planets,
    "gray_scott": lambda: systems.gray_scott(cells=(16, 16)),
    "hare_and_lynx": systems.hare_and_lynx,
    "kdv_solitons": lambda: systems.kdv_solitons(cells=32),
    "kelvin_helmholtz": lambda: systems.kelvin_helmholtz(cells=8),
    "jeans_wave": lambda: systems.jeans_wave(cells=16),
    "viscous_shear": lambda: systems.viscous_shear(cells=8),
    "brio_wu": lambda: systems.brio_wu(cells=16),
    "orszag_tang": lambda: systems.orszag_tang(cells=8),
    "kepler": systems.kepler,
    "kolmogorov_flow": lambda: systems.kolmogorov_flow(wavenumber=2, resolution=16),
    "kuramoto_sivashinsky": lambda: systems.kuramoto_sivashinsky(cells=16),
    "landau_damping": lambda: systems.landau_damping(count=200),
    "double_well": lambda: systems.double_well(particles=3),
    "lennard_jones_box": lambda: systems.lennard_jones_box(cells=3),
    "lennard_jones_melt": lambda: systems.lennard_jones_melt(cells=4),
    "liquid_argon": lambda: systems.liquid_argon(cells=4),
    "lid_driven_cavity": lambda: systems.lid_driven_cavity(cells=8),
    "lattice_cavity": lambda: systems.lattice_cavity(cells=8),
    "lattice_convection": lambda: systems.lattice_convection(cells=8),
    "shan_chen_droplet": lambda: systems.shan_chen_droplet(12, radius=3.0),
    "lorenz": systems.lorenz,
    "ising_quench": lambda: systems.ising_quench(4),
    "ising_model": lambda: systems.ising_model(cells=(6, 6)),
    "potts_model": lambda: systems.potts_model(cells=(6, 6)),
    "oregonator": systems.oregonator,
    "schloegl": systems.schloegl,
    "particle_mesh_universe": lambda: systems.particle_mesh_universe(cells=8),
    "particle_laden_taylor_green": lambda: systems.particle_laden_taylor_green(count=50, cells=8),
    "plasma_oscillation": lambda: systems.plasma_oscillation(0.1),
    "plasma_wave": lambda: systems.plasma_wave(count=200, cells=8),
    "weibel_instability": lambda: systems.weibel_instability(cells=8, per_cell=1),
    "plucked_string": lambda: systems.plucked_string(cells=20),
    "probed_flow": lambda: systems.probed_flow(resolution=16),
    "sedov": lambda: systems.sedov(cells=24),
    "shock_tube": lambda: systems.shock_tube((1.0, 0.0, 1.0), (0.1, 0.0, 0.1), dt=0.005, cells=16),
    "sod": lambda: systems.sod(cells=16),
    "sound_wave": lambda: systems.sound_wave(cells=8),
    "barotropic_jet": lambda: systems.barotropic_jet(5),
    "mountain_flow": lambda: systems.mountain_flow(5),
    "rossby_haurwitz_wave": lambda: systems.rossby_haurwitz_wave(5),
    "baroclinic_channel": lambda: systems.baroclinic_channel((6, 6, 4)),
    "baroclinic_turbulence": lambda: systems.baroclinic_turbulence(cells=8),
    "spinodal_decomposition": lambda: systems.spinodal_decomposition(cells=(8, 8)),
    "allen_cahn": lambda: systems.allen_cahn(cells=(12, 12)),
    "swift_hohenberg": lambda: systems.swift_hohenberg(cells=(8, 8)),
    "phase_field_crystal": lambda: systems.phase_field_crystal(cells=(12, 12)),
    "complex_ginzburg_landau": lambda: systems.complex_ginzburg_landau(cells=(8, 8)),
    "fitzhugh_nagumo": lambda: systems.fitzhugh_nagumo(cells=(8, 8)),
    "keller_segel": lambda: systems.keller_segel(cells=(8, 8)),
    "porous_medium": lambda: systems.porous_medium(cells=8),
    "surface_quasi_geostrophic": lambda: systems.surface_quasi_geostrophic(resolution=16, peak=3.0),
    "settling_disk": lambda: systems.settling_disk(16),
    "stommel_gyre": lambda: systems.stommel_gyre(cells=8),
    "taylor_green_2d": lambda: systems.taylor_green_2d(resolution=8),
    "taylor_green_3d": lambda: systems.taylor_green_3d(resolution=8),
    "thacker_bowl": lambda: systems.thacker_bowl(cells=10),
    "tunneling": lambda: systems.tunneling(cells=64),
    "two_species_plasma": lambda: systems.two_species_plasma(particles=128, cells=8),
    "two_stream": lambda: systems.two_stream(count=200, cells=8),
    "zeldovich_pancake": lambda: systems.zeldovich_pancake(count=32, cells=16),
}


def hump():
    """A smooth field in a periodic box."""
    return Field.from_function(Grid([6.0], (16,)), lambda x: jnp.exp(jnp.cos(x * jnp.pi / 3)))


def ripple():
    """A string out of rest."""
    u = hump()
    return {"displacement": u, "velocity": 0.3 * u}


def packet():
    """A wave function."""
    u = hump()
    return u.replace(data=jax.lax.complex(u.data, 0.5 * u.data**2))


def gas():
    """A sound wave."""
    return systems.sound_wave(cells=8)[1]


def slope(t, x):
    """A potential that moves."""
    return 0.1 * jnp.cos(x - t)


# Those that advance fields.
ON_FIELDS = {
    ARS222: (lambda: ARS222(Burgers(0.1)), hump, 0.02),
    ARS343: (lambda: ARS343(Burgers(0.1)), hump, 0.02),
    BackwardEuler: (lambda: BackwardEuler(Burgers(0.1)), hump, 0.02),
    CrankNicolson: (lambda: CrankNicolson(Burgers(0.1)), hump, 0.02),
    CFLSubsteps: (lambda: CFLSubsteps(SSPRK2(CompressibleEuler(5 / 3)), 0.4, 8), gas, 0.1),
    ETDRK2: (lambda: ETDRK2(Burgers(0.1)), hump, 0.02),
    ETDRK4: (lambda: ETDRK4(Burgers(0.1)), hump, 0.02),
    ExactLinear: (lambda: ExactLinear(Diffusion(0.3)), hump, 0.1),
    ExactWave: (lambda: ExactWave(Wave(1.2)), ripple, 0.1),
    PotentialPropagator: (
        lambda: Strang(PotentialPropagator(Schroedinger(slope)), ExactLinear(Schroedinger(slope))),
        packet,
        0.02,
    ),
    SplitStep: (lambda: SplitStep(Schroedinger(slope), 4), packet, 0.02),
}


def compare(sim, state, folder, key):
    sim = dataclasses.replace(sim, observers=(), guards=())
    whole = run(sim, state, STEPS, key=key, progress=False)
    for steps in (*RESUMED_AT, STEPS):
        part = run(sim, state, steps, key=key, checkpoint=folder, resume=True, progress=False)
    assert part.resumed_from == RESUMED_AT[-1]
    check_equal(part.state, whole.state, "state", "same")
    check_equal(part.carry.aux, whole.carry.aux, "aux", "same")


@pytest.mark.slow
@pytest.mark.parametrize("kind", INTEGRATORS, ids=lambda k: k.__name__)
def test_integrators(kind, tmp_path, key):
    integrator, dt, _ = INTEGRATORS[kind]
    state = state_for(kind)
    state = state.replace(charge=0.8 * state.mass) if kind is Boris else state
    compare(Simulation(integrator(), dt), state, tmp_path, key)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ON_FIELDS, ids=lambda k: k.__name__)
def test_integrators_of_fields(kind, tmp_path):
    integrator, state, dt = ON_FIELDS[kind]
    compare(Simulation(integrator(), dt), state(), tmp_path, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_systems(name, tmp_path, key):
    compare(*SYSTEMS[name](), tmp_path, key)


def test_every_integrator_and_system_is_in_the_matrix():
    """What is shipped is in it."""
    assert set(ON_FIELDS) == set(WITH_FIELDS)
    shipped = {
        name
        for name, value in ((name, getattr(systems, name)) for name in dir(systems))
        if inspect.isfunction(value)
        and "Simulation" in str(inspect.signature(value).return_annotation)
    }
    assert shipped == set(SYSTEMS)
