"""Every integrator, and systems of every kind: resumed at five cut points, the same bits."""

import dataclasses

import jax
import pytest

import physkit.systems as systems
from physkit.integrators import NoseHooverChain
from physkit.simulate import Simulation, run
from physkit.testing import check_equal
from tests.testing.test_everything import INTEGRATORS, bodies, thermostatted

CUTS, STEPS = (1, 3, 4, 7, 11), 12

# Small, but with everything that is carried.
SYSTEMS = {
    "brusselator": lambda: systems.brusselator(cells=(8, 8), key=jax.random.key(0)),
    "burgers_wave": lambda: systems.burgers_wave(cells=16),
    "fisher_front": lambda: systems.fisher_front(cells=16),
    "sound_wave": lambda: systems.sound_wave(cells=8),
    "kelvin_helmholtz": lambda: systems.kelvin_helmholtz(cells=8),
    "gray_scott": lambda: systems.gray_scott(cells=(16, 16)),
    "kuramoto_sivashinsky": lambda: systems.kuramoto_sivashinsky(cells=16),
    "lennard_jones_melt": lambda: systems.lennard_jones_melt(cells=4),
    "lorenz": systems.lorenz,
    "figure_eight": systems.figure_eight,
    "kepler": systems.kepler,
    "plasma_wave": lambda: systems.plasma_wave(count=200, cells=8),
    "two_stream": lambda: systems.two_stream(count=200, cells=8),
    "coherent_state": lambda: systems.coherent_state(cells=16),
    "sod": lambda: systems.sod(cells=16),
    "kdv_solitons": lambda: systems.kdv_solitons(cells=32),
}


def compare(sim, state, folder, key):
    sim = dataclasses.replace(sim, observers=(), guards=())
    whole = run(sim, state, STEPS, key=key, progress=False)
    for steps in (*CUTS, STEPS):
        part = run(sim, state, steps, key=key, checkpoint=folder, resume=True, progress=False)
    assert part.resumed_from == CUTS[-1]
    check_equal(part.state, whole.state, "state", "same")
    check_equal(part.carry.aux, whole.carry.aux, "aux", "same")


@pytest.mark.slow
@pytest.mark.parametrize("kind", INTEGRATORS, ids=lambda k: k.__name__)
def test_integrators(kind, tmp_path, key):
    integrator, dt, _ = INTEGRATORS[kind]
    state = thermostatted() if kind is NoseHooverChain else bodies()
    compare(Simulation(integrator(), dt), state, tmp_path, key)


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_systems(name, tmp_path):
    compare(*SYSTEMS[name](), tmp_path, None)
