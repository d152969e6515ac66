"""How many programs are compiled: a few for the first run of a system, none for one with other numbers."""

import contextlib

import jax
import numpy as np
import pytest

import physkit as pk
from physkit import systems
from physkit.core import as_device_array, replace_fields

# Each with its key, where it needs one.
SYSTEMS = {
    "argon": (lambda: systems.liquid_argon(4), None),
    "brusselator": (lambda: systems.brusselator(cells=(8, 8)), None),
    "burgers_wave": (lambda: systems.burgers_wave(cells=16), None),
    "coherent_state": (lambda: systems.coherent_state(cells=32), None),
    "decaying_turbulence": (
        lambda: systems.decaying_turbulence(resolution=16, peak=3.0, key=0),
        None,
    ),
    "double_well": (lambda: systems.double_well(particles=4), 0),
    "figure_eight": (systems.figure_eight, None),
    "fisher_front": (lambda: systems.fisher_front(length=40.0, cells=32), None),
    "fluid": (lambda: systems.lennard_jones_box(), 0),
    "giant_planets": (systems.giant_planets, None),
    "gray_scott": (lambda: systems.gray_scott(cells=(12, 12)), None),
    "hare_and_lynx": (systems.hare_and_lynx, None),
    "kdv_solitons": (lambda: systems.kdv_solitons(cells=64), None),
    "kelvin_helmholtz": (lambda: systems.kelvin_helmholtz(8), None),
    "kepler": (systems.kepler, None),
    "kolmogorov_flow": (lambda: systems.kolmogorov_flow(resolution=16, key=0), None),
    "kuramoto_sivashinsky": (lambda: systems.kuramoto_sivashinsky(cells=32), None),
    "landau_damping": (lambda: systems.landau_damping(128), None),
    "lorenz": (systems.lorenz, None),
    "melt": (lambda: systems.lennard_jones_melt(4, cutoff=2.0), None),
    "particle_laden": (
        lambda: systems.particle_laden_taylor_green(count=20, cells=8),
        None,
    ),
    "particle_mesh_universe": (lambda: systems.particle_mesh_universe(cells=4), None),
    "plasma_oscillation": (systems.plasma_oscillation, None),
    "plasma_wave": (lambda: systems.plasma_wave(count=64, cells=8), None),
    "plucked_string": (lambda: systems.plucked_string(cells=20), None),
    "probed_flow": (lambda: systems.probed_flow(resolution=16), None),
    "sedov": (lambda: systems.sedov(16), None),
    "sod": (lambda: systems.sod(16), None),
    "sound_wave": (lambda: systems.sound_wave(16, amplitude=0.1), None),
    "stommel_gyre": (lambda: systems.stommel_gyre(8), None),
    "taylor_green_2d": (lambda: systems.taylor_green_2d(resolution=8), None),
    "taylor_green_3d": (lambda: systems.taylor_green_3d(resolution=8), None),
    "thacker_bowl": (lambda: systems.thacker_bowl(8), None),
    "tunneling": (lambda: systems.tunneling(cells=256), None),
    "two_species_plasma": (lambda: systems.two_species_plasma(particles=64, cells=8), None),
    "two_stream": (lambda: systems.two_stream(64, cells=8), None),
    "zeldovich_pancake": (lambda: systems.zeldovich_pancake(count=16, cells=16), None),
}
FAST = {"lorenz", "melt", "plasma_wave", "taylor_green_2d"}


@contextlib.contextmanager
def compiled_programs():
    """A list that grows by an entry for each program that is compiled, or read from the cache on disk."""
    programs: list[str] = []

    def listen(event: str, seconds: float, **more: object) -> None:
        del seconds, more
        if event.endswith("backend_compile_duration"):
            programs.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield programs
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in SYSTEMS]
)
def test_a_first_run_compiles_few_programs_and_another_none(name):
    build, key = SYSTEMS[name]
    jax.clear_caches()  # of tests before this one
    sim, state = build()
    steps = sim.observation_period
    with compiled_programs() as programs:
        pk.run(sim, state, steps, key=key, progress=False)
        first = len(programs)
        # Other numbers, of a system that is made anew.
        sim, state = build()
        sim = replace_fields(sim, {"dt": as_device_array(0.9 * np.asarray(sim.dt))})
        programs.clear()
        pk.run(sim, state, steps, key=key, progress=False)
    assert first <= 4
    assert not programs


def test_init_is_one_program():
    sim, state = systems.taylor_green_2d(resolution=8)
    jax.clear_caches()
    with compiled_programs() as programs:
        pk.init(sim, state)
    assert len(programs) == 1
