"""Closed and open systems in the loop, against exact exponentials and closed forms."""

import dataclasses
import math
import re

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import physkit as pk
from physkit import quantum as q
from physkit.integrators.quantum import _exponential_action

DIMS = (2, 2)
STATIC = {"ZZ": 1.0, "XI": 0.5, "IY": 0.3}
LOWER = q.LocalOperator([[0, 1], [0, 0]], 0)


def driven():
    """Two coupled qubits, one of them driven by a pulse."""
    pulse = q.PauliSum({"YI": 1.0}).driven(q.GaussianPulse(0.8, 0.5, 0.3))
    return q.UnitaryEvolution(q.PauliSum(STATIC) + pulse)


@pytest.mark.parametrize(
    "wrong",
    [lambda: q.GaussianPulse(1.0, 0.0, 0.0), lambda: q.PiecewisePulse([1.0], -1.0)],
    ids=["Gaussian", "piecewise"],
)
def test_pulses_have_a_width(wrong):
    with pytest.raises(pk.errors.ParameterError, match="must be positive"):
        wrong()


def start():
    return q.Circuit(q.RY(0.3, 0), q.RX(0.4, 1), q.CNOT(0, 1))(q.StateVector.basis(DIMS))


def advance(integrator, state, dt, steps, key=None):
    return pk.simulate(pk.Simulation(integrator, dt=dt, guards=()), state, steps, key=key).state


INTEGRATORS = {
    "Krylov": lambda e: pk.integrators.Krylov(e, 4, 4),
    "Magnus": lambda e: pk.integrators.Magnus(e, 4),
    "Trotter": lambda e: pk.integrators.Trotter(e, 4),
    "RK4": pk.RK4,
}


@pytest.mark.parametrize("name", INTEGRATORS)
def test_a_constant_hamiltonian(name):
    h = sum(c * q.pauli_matrix(s) for s, c in STATIC.items())
    psi = scipy.linalg.expm(-1j * h) @ np.asarray(start().amplitudes).reshape(-1)
    end = advance(INTEGRATORS[name](q.UnitaryEvolution(q.PauliSum(STATIC))), start(), 0.05, 20)
    error = {"Krylov": 1e-13, "Magnus": 1e-13, "Trotter": 1e-6, "RK4": 1e-6}[name]
    np.testing.assert_allclose(np.asarray(end.amplitudes).reshape(-1), psi, atol=error)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Krylov", "Magnus", "Trotter"])
@pytest.mark.parametrize("order", [2, 4])
def test_the_battery(name, order):
    kinds = {"Krylov": lambda e: pk.integrators.Krylov(e, 4, order)}
    kinds["Magnus"] = lambda e: pk.integrators.Magnus(e, order)
    kinds["Trotter"] = lambda e: pk.integrators.Trotter(e, order)
    pk.testing.check_integrator(
        kinds[name](driven()),
        start(),
        0.2 if order == 4 else 0.1,
        order=order,
        reference=pk.RK4(driven()),
        symmetric=True,
        ignore=("tolerance",),
    )


@pytest.mark.slow
def test_the_battery_of_rates():
    lindblad = q.Lindblad(
        driven().hamiltonian, q.Jump(LOWER, 0.3), q.Jump(q.PauliSum({"IZ": 1}), 0.2)
    )
    pk.testing.check_tendency(driven(), start())
    pk.testing.check_tendency(lindblad, start().density())


@pytest.mark.slow
@pytest.mark.parametrize(
    "amplitudes_at_once", [2**20, 8, 1], ids=["together", "in pairs", "singly"]
)
def test_derivatives_of_krylov_from_an_eigenstate(amplitudes_at_once, monkeypatch):
    """Where Lanczos's recurrence ends at once, and has no derivative of its own."""
    monkeypatch.setattr(_exponential_action, "_AT_ONCE", amplitudes_at_once)

    @jax.jit
    def amplitude(field):
        h = q.PauliSum({"ZZ": 1.0}) + q.PauliSum({"XI": 1.0}) * field
        krylov = pk.integrators.Krylov(q.UnitaryEvolution(h), 4)
        return advance(krylov, q.StateVector.basis(DIMS), 0.3, 3).amplitudes[1, 0].imag

    # First order in the field: −∫ cos of twice the coupling of |00⟩ and |10⟩ …
    difference = (amplitude(1e-5) - amplitude(-1e-5)) / 2e-5
    np.testing.assert_allclose(jax.jit(jax.grad(amplitude))(0.0), difference, rtol=1e-8)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(amplitude))(0.0), difference, rtol=1e-8)


def test_decay_of_an_oscillator_and_of_coherence():
    """n₀ e^{−κt}; T₁ and T₂ of a qubit; trace and positivity guarded."""
    levels, kappa = 6, 0.7
    a = q.LocalOperator(q.destroy(levels), 0)
    cavity = q.Lindblad(q.LocalOperator(q.number(levels), 0) * 2.0, q.Jump(a, kappa))
    state = q.DensityMatrix.basis((levels,), (3,))
    photons = pk.quantities.Expectation(q.LocalOperator(q.number(levels), 0))
    simulation = pk.Simulation(
        pk.RK4(cavity),
        dt=0.01,
        observers=pk.Every(50, n=photons, purity=pk.quantities.Purity()),
        guards=(pk.guards.NormDrift(10), pk.guards.PositiveDensity(50)),
    )
    run = pk.run(simulation, state, 100, progress=False)
    np.testing.assert_allclose(run.frames["n"], 3 * np.exp(-kappa * run.times["n"]), rtol=1e-8)

    t1, tphi = 4.0, 3.0
    qubit = q.Lindblad(
        q.PauliSum({"Z": 0.0}), q.Jump(LOWER, 1 / t1), q.Jump(q.PauliSum({"Z": 1.0}), 0.5 / tphi)
    )
    rho = advance(pk.integrators.Magnus(qubit), q.DensityMatrix(np.full((2, 2), 0.5)), 1.0, 2)
    np.testing.assert_allclose(rho.matrix()[1, 1], 0.5 * np.exp(-2 / t1), rtol=1e-12)
    np.testing.assert_allclose(
        rho.matrix()[0, 1], 0.5 * np.exp(-2 * (0.5 / t1 + 1 / tphi)), rtol=1e-12
    )


def test_trajectories_average_to_lindblad():
    system = q.Lindblad(q.PauliSum({"X": 0.8}), q.Jump(LOWER, 0.5))
    ground = q.StateVector.basis((2,))
    mixed = advance(pk.RK4(system), ground.density(), 0.02, 50)
    jumps = pk.integrators.QuantumJumps(system)
    excited = jax.jit(jax.vmap(lambda k: advance(jumps, ground, 0.02, 50, k).probabilities()[1]))(
        jax.random.split(jax.random.key(1), 1000)
    )
    error = np.std(excited) / np.sqrt(1000)
    assert error > 0.001
    assert abs(np.mean(excited) - mixed.probabilities()[1]) < 4 * error + 0.005


@pytest.mark.slow
def test_trajectories_are_members_of_a_sweep(tmp_path):
    """In a folder, chunk by chunk, as several processes of a cluster share one: the numbers of single runs."""
    system = q.Lindblad(q.PauliSum({"X": 0.8}), q.Jump(LOWER, 0.5))
    record = pk.Every(10, p=pk.quantities.Probabilities())
    simulation = pk.Simulation(
        pk.integrators.QuantumJumps(system), dt=0.02, observers=record, guards=()
    )
    trajectories = pk.Sweep(
        (simulation, q.StateVector.basis((2,))), 50, replicas=12, key=jax.random.key(1)
    )
    first = pk.sweep(trajectories, to=tmp_path, chunk_size=8, wall_time=0.0, progress=False)
    assert not first.complete
    found = pk.sweep(trajectories, to=tmp_path, progress=False)
    p = np.asarray(found["p"])
    assert p.shape == (12, 6, 2)
    assert p[:, -1, 1].std() > 0.05
    for member in (0, 11):
        simulation, state, key = trajectories.member(member)
        alone = pk.simulate(simulation, state, 50, key=key).frames["p"]
        np.testing.assert_allclose(p[member], alone, atol=1e-14)


def test_a_run_goes_on_bitwise(tmp_path):
    simulation = pk.Simulation(pk.RK4(driven()), dt=0.05)
    whole = pk.run(simulation, {"qubits": start()}["qubits"], 8, progress=False)
    pk.run(simulation, start(), 4, to=tmp_path / "run", progress=False)
    resumed = pk.run(simulation, start(), 8, to=tmp_path / "run", resume=True, progress=False)
    assert np.array_equal(whole.state.amplitudes, resumed.state.amplitudes)


def test_a_guard_ends_a_run_that_gains_norm():
    simulation = pk.Simulation(pk.RK4(driven()), dt=3.0, guards=(pk.guards.NormDrift(1),))
    with pytest.raises(pk.SimulationDiverged, match="NormDrift"):
        pk.run(simulation, start(), 10, progress=False)


def test_a_krylov_space_that_is_too_small_is_reported():
    chain = q.PauliSum(
        {f"Z{k} Z{k + 1}": 5.0 for k in range(2)} | {f"X{k}": 5.0 for k in range(3)}, 3
    )
    krylov = pk.integrators.Krylov(q.UnitaryEvolution(chain), 3)
    with pytest.raises(pk.errors.StepSizeError):
        pk.run(pk.Simulation(krylov, dt=1.0), q.StateVector.basis((2, 2, 2)), 1, progress=False)


@pytest.mark.parametrize("state", [q.StateVector.basis((2,)), q.DensityMatrix.basis((2,))])
def test_steps_far_too_long_for_runge_kutta_end_a_run(state):
    """‖H‖ dt = 5: the norm would be 10²⁰⁰ a moment later."""
    method = pk.RK4(q.UnitaryEvolution(q.PauliSum({"X": 50.0})))
    with pytest.raises(pk.errors.SimulationDiverged, match="dt is too large"):
        pk.run(pk.Simulation(method, dt=0.1), state, 40, progress=False)
    pk.run(pk.Simulation(method, dt=0.002), state, 4, progress=False)


@pytest.mark.parametrize(("field", "rate"), [(0.5, 20.0), (30.0, 0.5)])
def test_steps_far_too_long_for_trajectories_end_a_run(field, rate):
    """Of γ dt = 2 a second jump would be common; vectors that ‖H‖ dt = 3 multiplied are normalized."""
    system = q.Lindblad(q.PauliSum({"X": field}), q.Jump(LOWER, rate))
    simulation = pk.Simulation(pk.integrators.QuantumJumps(system), dt=0.1)
    with pytest.raises(pk.errors.SimulationDiverged, match="dt is too large"):
        pk.run(simulation, q.StateVector.basis((2,), 1), 20, key=0, progress=False)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (
            lambda: pk.init(
                pk.Simulation(
                    pk.RK4(q.UnitaryEvolution(q.LocalOperator([[0, 1], [0, 0]], 0))), dt=0.1
                ),
                q.StateVector.basis((2,)),
            ),
            pk.errors.DeclarationError,
            "not Hermitian",
        ),
        (
            lambda: advance(
                pk.RK4(q.Lindblad(q.PauliSum({"Z": 1.0}), q.Jump(LOWER))),
                q.StateVector.basis((2,)),
                0.1,
                1,
            ),
            pk.errors.DeclarationError,
            "density",
        ),
        (
            lambda: pk.init(
                pk.Simulation(
                    pk.RK4(q.UnitaryEvolution(q.LocalOperator(np.diag([1, -1]), 1))), dt=0.1
                ),
                q.DensityMatrix.basis((2,)),
            ),
            pk.errors.ShapeError,
            r"subsystems \[1\] of a state of 1",
        ),
        (
            lambda: pk.integrators.Trotter(q.UnitaryEvolution(LOWER)),
            pk.errors.DeclarationError,
            "Hermitian",
        ),
        (
            lambda: q.DensityMatrix.basis((2, 2)).shard((2,)),
            pk.errors.DeviceError,
            "one device",
        ),
    ],
)
def test_mistakes_are_named(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_a_circuit_a_step():
    kick = pk.integrators.RepeatedCircuit(q.Circuit(q.RX(np.pi / 10, 0)))
    end = advance(kick, {"qubit": q.StateVector.basis((2,))}["qubit"], 1.0, 10)
    np.testing.assert_allclose(end.probabilities(), [0, 1], atol=1e-14)
    noisy = dataclasses.replace(kick, circuit=q.Circuit(q.BitFlip(1.0, 0)))
    end = advance(noisy, q.StateVector.basis((2,)), 1.0, 3, key=0)
    np.testing.assert_allclose(end.probabilities(), [0, 1], atol=1e-14)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Complex dtype support")  # diffrax says it of every such state
def test_diffrax_takes_complex_states():
    end = advance(pk.Diffrax(diffrax.Tsit5(), driven(), rtol=1e-9), start(), 0.1, 10)
    exact = advance(pk.RK4(driven()), start(), 0.0025, 400)
    np.testing.assert_allclose(end.amplitudes, exact.amplitudes, atol=1e-7)
    assert jnp.iscomplexobj(end.amplitudes)


def test_a_trotter_step_of_a_chain_takes_few_passes_over_the_state():
    n = 10
    chain = {f"Z{k} Z{k + 1}": -1.0 for k in range(n - 1)} | {f"X{k}": -0.7 for k in range(n)}
    trotter = pk.integrators.Trotter(q.UnitaryEvolution(q.PauliSum(chain, n)))
    first, sim = q.StateVector.basis((2,) * n), pk.Simulation(trotter, dt=0.01, guards=())
    run = lambda x: pk.simulate(sim, first.with_array(x), 1).state.array
    program = str(jax.make_jaxpr(run)(first.array))
    products = re.findall(r"c\d+\[([\d,]+)\] = dot_general", program)
    passes = [shape for shape in products if math.prod(map(int, shape.split(","))) >= 2**n]
    assert 2 <= len(passes) <= 12, products  # of 38 factors


def test_trotter_turns_local_operators_and_the_identity_exactly():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(6, 6)) + 1j * rng.normal(size=(6, 6))
    matrix = matrix + matrix.conj().T
    trotter = pk.integrators.Trotter(q.UnitaryEvolution(q.LocalOperator(matrix, 0, 1)))
    even = q.StateVector(np.ones((2, 3)) / np.sqrt(6))
    end = advance(trotter, even, 0.1, 3).amplitudes.reshape(-1)
    exact = scipy.linalg.expm(-0.3j * matrix) @ np.ones(6) / np.sqrt(6)
    np.testing.assert_allclose(end, exact, atol=1e-13)
    identity = pk.integrators.Trotter(q.UnitaryEvolution(q.PauliSum({"II": 0.7, "ZI": 0.2})))
    turned = advance(identity, q.StateVector.basis((2, 2)), 0.1, 3).amplitudes[0, 0]
    np.testing.assert_allclose(turned, np.exp(-0.27j), atol=1e-14)


def test_a_krylov_space_takes_few_passes_over_its_vectors():
    """Each is made orthogonal to those before twice, by two products with the basis each time."""
    apply = lambda operator, x: operator.apply(x)
    space = lambda x: _exponential_action.krylov_space(apply, 4, q.PauliSum(STATIC), x)
    # One product is the energy.
    assert str(jax.make_jaxpr(space)(start().array)).count("dot_general") == 5
