"""The shipped systems at sizes that a GPU is used for, in single precision, and the programs of a step."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

import physkit as pk
from physkit import systems
from physkit.core import cast_floats
from physkit.simulate.loop._advance import advance_chunk

Made = tuple[pk.Simulation, Any]


SYSTEMS: dict[str, Callable[[], Made]] = {
    "barotropic_jet": lambda: systems.barotropic_jet(85),
    "mountain_flow": lambda: systems.mountain_flow(42),
    "rossby_haurwitz_wave": lambda: systems.rossby_haurwitz_wave(42),
    "baroclinic_channel": lambda: systems.baroclinic_channel((96, 96, 24)),
    "baroclinic_turbulence": lambda: systems.baroclinic_turbulence(cells=256),
    "brusselator": lambda: systems.brusselator(cells=(256, 256)),
    "burgers_wave": lambda: systems.burgers_wave(cells=4096),
    "coherent_state": lambda: systems.coherent_state(cells=4096),
    "convection_cell": lambda: systems.convection_cell(cells=256),
    "cylinder_in_channel": lambda: systems.cylinder_in_channel(cells=164),
    "decaying_turbulence": lambda: systems.decaying_turbulence(resolution=256),
    "figure_eight": systems.figure_eight,
    "fisher_front": lambda: systems.fisher_front(cells=4096),
    "giant_planets": systems.giant_planets,
    "go_model": systems.go_model,
    "gray_scott": lambda: systems.gray_scott(cells=(256, 256)),
    "hare_and_lynx": systems.hare_and_lynx,
    "kdv_solitons": lambda: systems.kdv_solitons(cells=4096),
    "kelvin_helmholtz": lambda: systems.kelvin_helmholtz(cells=256),
    "kepler": systems.kepler,
    "kolmogorov_flow": lambda: systems.kolmogorov_flow(resolution=256),
    "kremer_grest_melt": lambda: systems.kremer_grest_melt(beads=100, cells=(20, 20, 20)),
    "kuramoto_sivashinsky": lambda: systems.kuramoto_sivashinsky(cells=4096),
    "landau_damping": lambda: systems.landau_damping(count=100_000),
    "double_well": lambda: systems.double_well(particles=100_000),
    "lennard_jones_box": lambda: systems.lennard_jones_box(cells=20),
    "lennard_jones_melt": lambda: systems.lennard_jones_melt(cells=20),
    "lid_driven_cavity": lambda: systems.lid_driven_cavity(cells=256),
    "lattice_cavity": lambda: systems.lattice_cavity(cells=1024),
    "lattice_convection": lambda: systems.lattice_convection(cells=512),
    "shan_chen_droplet": lambda: systems.shan_chen_droplet(512, radius=100.0),
    "liquid_argon": lambda: systems.liquid_argon(cells=20),
    "ising_model": lambda: systems.ising_model(2.269, cells=(1024, 1024)),
    "ising_quench": lambda: systems.ising_quench(16),
    "lorenz": systems.lorenz,
    "orszag_tang": lambda: systems.orszag_tang(cells=256),
    "potts_model": lambda: systems.potts_model(3, cells=(1024, 1024)),
    "oregonator": systems.oregonator,
    "schloegl": systems.schloegl,
    "particle_mesh_universe": lambda: systems.particle_mesh_universe(cells=64),
    "particle_laden_taylor_green": lambda: systems.particle_laden_taylor_green(
        count=100_000, cells=128
    ),
    "plasma_oscillation": lambda: systems.plasma_oscillation(0.1),
    "plasma_wave": lambda: systems.plasma_wave(count=100_000, cells=256),
    "acoustic_monopole": lambda: systems.acoustic_monopole(cells=128),
    "elastic_half_space": lambda: systems.elastic_half_space(cells=2048),
    "electromagnetic_cavity": lambda: systems.electromagnetic_cavity(cells=(128, 128, 128)),
    "dielectric_slab": lambda: systems.dielectric_slab(cells=1024),
    "plucked_string": lambda: systems.plucked_string(cells=4096),
    "probed_flow": lambda: systems.probed_flow(resolution=256),
    "sedov": lambda: systems.sedov(cells=4096),
    "shock_tube": lambda: systems.shock_tube((1.0, 0.0, 1.0), (0.1, 0.0, 0.1), dt=1e-5, cells=4096),
    "sod": lambda: systems.sod(cells=4096),
    "sound_wave": lambda: systems.sound_wave(cells=4096),
    "spinodal_decomposition": lambda: systems.spinodal_decomposition(cells=(256, 256)),
    "stommel_gyre": lambda: systems.stommel_gyre(cells=256),
    "taylor_green_2d": lambda: systems.taylor_green_2d(resolution=256),
    "taylor_green_3d": lambda: systems.taylor_green_3d(resolution=64),
    "thacker_bowl": lambda: systems.thacker_bowl(cells=256),
    "tunneling": lambda: systems.tunneling(cells=4096),
    "weibel_instability": lambda: systems.weibel_instability(cells=4096),
    "two_species_plasma": lambda: systems.two_species_plasma(particles=100_000, cells=256),
    "two_stream": lambda: systems.two_stream(count=100_000, cells=256),
    "water_box": lambda: systems.water_box(cells=10),
    "zeldovich_pancake": lambda: systems.zeldovich_pancake(count=4096, cells=4096),
}
GRADIENT_STEPS = 37  # a number of turns that no other loop has


def bare(made: Made) -> Made:
    """A system that records and checks nothing, so that a turn of the outermost loop is one step."""
    sim, state = made
    sim = dataclasses.replace(sim, observers=(), guards=(), adjoint=pk.adjoints.Direct())
    return cast_floats(sim, jnp.dtype(jnp.float32)), cast_floats(state, jnp.dtype(jnp.float32))


def forward_program(made: Made) -> tuple[Callable, tuple]:
    """The program that `run` calls, and its arguments as shapes: nothing is computed."""
    sim, state = bare(made)
    carry = start(sim, state)

    def program(sim, carry, blocks):
        return advance_chunk((sim, carry), blocks, 1)[0]

    return program, (sim, carry, jax.ShapeDtypeStruct((), jnp.int32))


def gradient_program(made: Made) -> tuple[Callable, tuple]:
    """Value and gradient of a number at the end, by parameters and state, not by the box; its arguments."""
    sim, state = bare(made)
    model = sim, start(sim, state)

    def value(numbers, rest):
        sim, carry = eqx.combine(numbers, rest)
        end = pk.simulate(sim, carry, GRADIENT_STEPS).state
        leaves = [x for x in jax.tree.leaves(end) if eqx.is_inexact_array(x)]
        return sum(jnp.sum(jnp.abs(x) ** 2) for x in leaves)

    def program(model):
        numbers, rest = eqx.partition(model, jax.tree_util.tree_map_with_path(_varies, model))
        return jax.value_and_grad(value)(numbers, rest)

    return program, (model,)


def _varies(path: Any, x: Any) -> bool:
    return eqx.is_inexact_array(x) and not re.search(r"space|grid", jax.tree_util.keystr(path))


def start(sim: pk.Simulation, state: Any) -> Any:
    """The carry of step 0, as shapes where these do not depend on numbers: nothing is computed."""
    moving, rest = eqx.partition(state, jax.tree_util.tree_map_with_path(_varies, state))
    key = jax.random.key(0)
    try:
        return eqx.filter_eval_shape(lambda s: pk.init(sim, eqx.combine(s, rest), key=key), moving)
    except pk.errors.CapacityError:  # lists are as wide as the particles are dense
        return pk.init(sim, state, key=key)
