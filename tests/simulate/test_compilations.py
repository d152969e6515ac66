"""How many programs are compiled: a few for the first run of a system, none for one with other numbers."""

import contextlib

import jax
import numpy as np
import pytest

import physkit as pk
from physkit import systems
from physkit.core import as_device_array, replace_fields

from .test_restart_matrix import SYSTEMS

FAST = {"lorenz", "lennard_jones_melt", "plasma_wave", "taylor_green_2d"}


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
def test_a_first_run_compiles_few_programs_and_another_none(name, key):
    build = SYSTEMS[name]
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
