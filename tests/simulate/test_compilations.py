"""How many programs are compiled: a few for the first run of a system, none for one with other numbers."""

import contextlib
import warnings
from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import physkit as pk
from physkit import systems
from physkit.core import PLAIN_KERNELS, as_device_array, gpu_compiler_options, replace_fields
from physkit.core.numerics import _placement
from physkit.ensemble.compute import _batch_programs
from physkit.fit import _program
from physkit.fit._program import compile_by_content
from physkit.simulate import compiler_options, init
from physkit.simulate.loop import _chunk_program
from tests.compilations import compiled_programs

from .problems import particles, springs
from .test_restart_matrix import SYSTEMS

FAST = {"lorenz", "lennard_jones_melt", "plasma_wave", "taylor_green_2d"}


@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in SYSTEMS]
)
def test_a_first_run_compiles_few_programs_and_another_none(name, key):
    build = SYSTEMS[name]
    jax.clear_caches()  # of tests before this one
    sim, state = build()
    steps = sim.observation_period
    with compiled_programs() as programs:
        run = pk.run(sim, state, steps, key=key, progress=False)
        first = len(programs)
        # The same numbers, of a system that is made anew.
        sim, state = build()
        programs.clear()
        # Fisher's front on these few cells does not stay finite for long; nor need it, to be compiled.
        with contextlib.suppress(pk.errors.SimulationDiverged):
            pk.run(sim, run.carry, steps, progress=False)
        continued = len(programs)
        if not isinstance(
            state, pk.lattice_boltzmann.Populations
        ):  # these are made for one time step
            sim = replace_fields(sim, {"dt": as_device_array(0.9 * np.asarray(sim.dt))})
        programs.clear()
        pk.run(sim, state, steps, key=key, progress=False)
    assert first <= 4
    assert not continued
    assert not programs


def test_a_run_that_goes_on_with_other_numbers_compiles_one_program(key):
    build = SYSTEMS["kepler"]
    (sim, state), (other, _) = build(), build()
    steps = sim.observation_period
    # At another dt, and at the time that the carry has come to.
    dt = np.asarray(sim.dt)
    numbers = {"dt": as_device_array(0.9 * dt), "t0": as_device_array(0.1 * dt * steps)}
    other = replace_fields(other, numbers)
    carry = pk.run(sim, state, steps, key=key, progress=False).carry
    jax.clear_caches()
    pk.run(sim, state, steps, key=key, progress=False)  # the chunk, once more
    with compiled_programs() as programs:
        pk.run(other, carry, steps, progress=False)
        assert len(programs) <= 1
        programs.clear()
        pk.run(other, carry.replace(state=state), steps, progress=False)  # of another state, too
        assert not programs


def both(build):
    """A system, and the same made anew with another time step."""
    sim, state = build()
    return build(), (replace_fields(sim, {"dt": as_device_array(0.9 * np.asarray(sim.dt))}), state)


def counts(function, first, second):
    """How many programs two calls compile."""
    jax.clear_caches()
    with compiled_programs() as programs:
        function(*first)
        before = len(programs)
        function(*second)
    return before, len(programs) - before


def vortices():
    return systems.taylor_green_2d(resolution=8)


def liquid():
    return systems.lennard_jones_melt(4)


builds = pytest.mark.parametrize("build", [vortices, pytest.param(liquid, marks=pytest.mark.slow)])


@builds
def test_simulate_is_a_start_and_a_program(build):
    steps = build()[0].observation_period
    first, second = counts(lambda *model: pk.simulate(*model, steps), *both(build))
    assert first <= 3
    assert second == 0


def test_inside_of_jit_simulate_is_part_of_one_program():
    steps = vortices()[0].observation_period
    program = eqx.filter_jit(lambda *model: pk.simulate(*model, steps))
    assert counts(program, *both(vortices)) == (1, 0)


def test_a_gradient_outside_of_jit_is_a_few_programs():
    def loss(model, steps):
        return jnp.sum(pk.simulate(*model, steps).state.position ** 2)

    def gradient(*model):
        return eqx.filter_grad(loss)(model, model[0].observation_period)

    first, second = counts(gradient, *both(systems.kepler))
    assert first <= 12
    assert second == 0


@builds
def test_diagnose_is_a_few_programs(build):
    def bad(factor):
        sim, state = build()
        return replace_fields(sim, {"dt": as_device_array(factor * np.asarray(sim.dt))}), state

    first, second = counts(lambda *model: pk.diagnose(*model, 40), bad(1e8), bad(2e8))
    assert first <= 4
    assert second == 0


@builds
def test_a_sweep_is_a_few_programs(build):
    def compute(sim, state, least):
        steps = np.linspace(least, 1, 3) * float(sim.dt)
        axis = pk.SweepAxis(lambda m: m[0].dt, steps, name="dt")
        return pk.sweep((sim, state), sim.observation_period, over=axis, progress=False)

    first, second = counts(compute, (*build(), 0.5), (*build(), 0.6))
    assert first <= 8
    assert second == 0


def decaying(values, data):
    return values["size"] * jnp.exp(-values["rate"] * jnp.arange(5.0)) - data


def loss(values, data):
    return jnp.sum(decaying(values, data) ** 2)


@pytest.mark.parametrize(
    ("objective", "method"),
    [
        (decaying, None),
        pytest.param(decaying, pk.fitting.GaussNewton(), marks=pytest.mark.slow),
        pytest.param(loss, None, marks=pytest.mark.slow),
        (loss, "adam"),
    ],
)
def test_a_fit_is_a_few_programs_and_another_none(objective, method):
    def compute(size):
        # Objects made anew: an optimizer, and a function that calls the objective.
        chosen = optax.adam(0.03) if method == "adam" else method
        start = {"size": jnp.asarray(size), "rate": jnp.asarray(0.5)}
        data = jnp.asarray([2.0, 1.0, 0.6, 0.4, 0.1])
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", pk.errors.PhyskitWarning
            )  # of steps that did not suffice
            pk.fit(
                lambda m, d: objective(m, d),
                start,
                where=lambda m: m,
                method=chosen,
                data=data,
                progress=False,
            )

    first, second = counts(compute, (1.0,), (1.1,))
    assert first <= 16
    assert second == 0


def test_the_objective_of_a_fit_is_called_once():
    calls = []

    def residuals(values):
        calls.append(values)
        return values["size"] * jnp.arange(1.0, 4.0) - 2.0

    pk.fit(residuals, {"size": jnp.asarray(1.0)}, where=lambda m: m, progress=False)
    assert len(calls) == 1


def test_a_fit_sees_what_its_objective_closes_over():
    target = {"rate": 2.0}

    def residuals(m):
        return m - jnp.asarray([target["rate"], target["rate"] + 0.01])

    def compute():
        return pk.fit(residuals, jnp.asarray(1.0), where=lambda m: {"m": m}, progress=False)

    first = compute().values["m"]
    target["rate"] = 3.0
    np.testing.assert_allclose(compute().values["m"], first + 1, rtol=1e-6)


def test_a_simulation_of_numbers_that_are_inputs_is_traced_once():
    traced = []

    def position(now):
        traced.append(1)
        return now.state.position

    trap = pk.HarmonicTrap(stiffness=1.0)
    sim = pk.Simulation(pk.VelocityVerlet(trap), dt=0.1, observers=pk.Every(1, position=position))
    state = pk.Particles(jnp.ones((1, 1)), jnp.zeros((1, 1)), jnp.ones(1))

    def residuals(model):
        return pk.simulate(*model, 10).frames["position"] - 0.3

    def fit():
        pk.fit(residuals, (sim, state), where=lambda m: m[1].position, progress=False)
        return len(traced)

    once = fit()
    assert once > 0
    assert fit() == once


def test_a_second_run_traces_no_results_anew(monkeypatch):
    state = particles()
    sim = replace_fields(springs(), {"observers": (pk.MeanSquareDisplacement(1, lags=2),)})
    traced = []
    summary = pk.MeanSquareDisplacement.summary
    record = lambda self, *x: traced.append(x) or summary(self, *x)
    monkeypatch.setattr(pk.MeanSquareDisplacement, "summary", record)
    first = pk.run(sim, state, 4, progress=False)
    assert traced
    traced.clear()
    second = pk.run(sim, state, 4, progress=False)
    assert not traced
    np.testing.assert_array_equal(
        first["mean_square_displacement"]["value"], second["mean_square_displacement"]["value"]
    )


def test_init_is_one_program():
    sim, state = systems.taylor_green_2d(resolution=8)
    jax.clear_caches()
    with compiled_programs() as programs:
        pk.init(sim, state)
    assert len(programs) == 1


def test_only_large_states_give_up_kernels_of_whole_loops(key):
    """On CPUs a sum over pairs of few particles is one kernel; so it is in a batch of them, however large."""
    small = init(springs(), particles(), key=key)

    def of_bytes(size, members=1):
        return compiler_options(small.replace(state=jnp.zeros(size // 4, jnp.float32)), members)

    assert of_bytes(4_000) == PLAIN_KERNELS
    assert "xla_disable_hlo_passes" in of_bytes(2**20)
    assert "xla_disable_hlo_passes" not in of_bytes(2**20, members=1000)
    assert "xla_disable_hlo_passes" in of_bytes(2**24, members=8)


def test_options_for_gpus_are_known_to_xla():
    options = gpu_compiler_options()
    assert set(options) <= {"xla_gpu_experimental_enable_fusion_autotuner"}
    if jax.__version_info__ < (0, 13):  # a later XLA may do without
        assert options


def test_programs_that_are_not_for_cpus_get_the_options_for_gpus(monkeypatch, key):
    """All that a run, a fit, a sweep and `simulate` compile, shown by options that XLA refuses."""
    sim, state = springs(), particles()
    carry = init(sim, state, key=key)
    fit_program = compile_by_content(lambda x: 2 * x)
    for module in (_placement, _chunk_program, _program):
        monkeypatch.setattr(module, "is_on_cpu", lambda tree: False)
    gpu = mock.NonCallableMock(spec=jax.Device, platform="gpu")
    for module in (_placement, _chunk_program, _program, _batch_programs):
        monkeypatch.setattr(module, "gpu_compiler_options", lambda: {"xla_no_such_option": True})
    for work in (
        lambda: init(sim, state, key=key),
        lambda: pk.simulate(sim, carry, 6),
        lambda: pk.run(sim, carry, 6, progress=False),
        lambda: fit_program(jnp.ones(2)),
        lambda: _batch_programs._make_program(jnp.sin, (gpu,), (0,), (), ())(jnp.ones(2)),
    ):
        jax.clear_caches()
        with pytest.raises(jax.errors.JaxRuntimeError, match="xla_no_such_option"):
            work()
