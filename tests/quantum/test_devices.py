"""State vectors over devices, emulated on one: circuits, equations of motion, observers, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit import quantum as q

N = 5


@pytest.fixture(autouse=True)
def _emulated(monkeypatch):
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")


def circuit():
    """Gates within parts, across the cut, both ways, and one too large for a block."""
    return q.Circuit(
        [q.RY(0.3 + 0.1 * k, k) for k in range(N)],
        [q.CNOT(k, k + 1) for k in range(N - 1)],
        q.RZZ(0.4, 0, 4),
        q.SWAP(0, 1),
        q.U(0.1, 0.2, 0.3, 0),
        q.CRX(0.5, 3, 0),
        q.Toffoli(1, 4, 2),
        q.RXX(0.7, 1, 3),
    )


def start():
    rng = np.random.default_rng(0)
    psi = rng.normal(size=(2,) * N) + 1j * rng.normal(size=(2,) * N)
    return q.StateVector.unnormalized(psi).normalized()


H = q.PauliSum({"XZIIY": 0.3, "ZZIII": 1.0, "IYXII": 0.4, "IIIXX": 0.2, "YYIIZ": 0.1})
OBSERVED = {
    "energy": pk.quantities.Expectation(H),
    "pair": pk.quantities.Probabilities((3, 0)),
    "purity": pk.quantities.Purity(),
}


def repeated(gates=None):
    integrator = pk.integrators.RepeatedCircuit(gates or circuit())
    return pk.Simulation(integrator, dt=1.0, observers=pk.Every(1, **OBSERVED))


def evolving():
    drive = q.PauliSum({"X0": 0.5, "Z4": 0.1}, N).driven(q.GaussianPulse(2.0, 0.2, 0.2))
    return pk.Simulation(
        pk.RK4(q.UnitaryEvolution(H + drive)),
        dt=0.05,
        observers=pk.Every(4, **OBSERVED),
        guards=(pk.guards.NormDrift(4),),
    )


@pytest.mark.parametrize(
    ("build", "steps", "devices"),
    [
        (evolving, 4, (2, 2)),
        pytest.param(evolving, 4, (2,), marks=pytest.mark.slow),
        pytest.param(repeated, 2, (2, 2), marks=pytest.mark.slow),
        pytest.param(repeated, 2, (2,), marks=pytest.mark.slow),
    ],
)
def test_devices_change_nothing(build, steps, devices):
    pk.testing.check_devices(build(), start(), steps, devices=[devices], gradient=build is repeated)


@pytest.mark.compiled_quickly
@pytest.mark.slow
def test_three_cuts_and_derivatives_of_an_equation():
    state = start()
    with pytest.raises(pk.errors.DeviceError, match="2 subsystems whole, too few for a gate on 3"):
        pk.simulate(repeated(), state, 1, devices=(2, 2, 2))
    on_two = q.Circuit([gate for gate in circuit().gates if len(gate.sites) <= 2])
    pk.testing.check_devices(repeated(on_two), state, 2, devices=[(2, 2, 2)], gradient=False)
    pk.testing.check_devices(evolving(), state, 4, devices=[(2, 2)])


def test_only_gates_across_a_cut_exchange_halves():
    def sent(gates):
        sim = pk.Simulation(pk.integrators.RepeatedCircuit(q.Circuit(gates)), dt=1.0, guards=())
        return pk.devices.communication_report(sim, start(), devices=(2,)).bytes

    assert sent([q.H(1), q.CNOT(2, 4)]) == 0
    half = start().amplitudes.nbytes // 2 // 2
    # There and back; a device sends half of what it has.
    assert sent([q.H(0)]) == 2 * half
    assert sent([q.H(0), q.CNOT(0, 1), q.CNOT(1, 2), q.RX(0.2, 0)]) == 2 * half


@pytest.mark.parametrize(
    ("integrator", "devices", "says"),
    [
        (lambda: pk.integrators.RepeatedCircuit(circuit()), (4,), "as many along axis k"),
        (lambda: pk.integrators.RepeatedCircuit(circuit()), (2, 2, 3), "as many along axis k"),
        (lambda: pk.integrators.Krylov(q.UnitaryEvolution(H)), (2,), "Krylov space"),
    ],
)
def test_what_is_not_computed_over_devices_is_named(integrator, devices, says):
    simulation = pk.Simulation(integrator(), dt=0.1, guards=())
    with pytest.raises(pk.errors.DeviceError, match=says):
        pk.simulate(simulation, start(), 1, devices=devices)


def test_single_precision_stays_single():
    state = q.StateVector(start().amplitudes.astype(jnp.complex64))
    simulation = pk.Simulation(pk.integrators.RepeatedCircuit(circuit()), dt=1.0, guards=())
    end = pk.simulate(simulation, state, 1, devices=(2, 2)).state
    assert end.amplitudes.dtype == jnp.complex64
    expected = jax.jit(lambda s: circuit()(s).amplitudes)(state)
    np.testing.assert_allclose(end.amplitudes, expected, atol=1e-6)
