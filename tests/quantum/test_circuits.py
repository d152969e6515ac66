"""States, gates, circuits and channels against matrices of the whole space."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import physkit as pk
from physkit import quantum as q
from physkit.quantum._contraction import as_whole

DIMS = (2, 2, 2)
P = q.pauli_matrix
GATES = [
    (q.H(0), np.kron((P("X") + P("Z")) / np.sqrt(2), np.eye(4))),
    (q.RX(0.4, 1), scipy.linalg.expm(-0.2j * P("IXI"))),
    (q.RYY(0.3, 2, 0), scipy.linalg.expm(-0.15j * P("YIY"))),
    (q.RZZ(0.3, 0, 1), scipy.linalg.expm(-0.15j * P("ZZI"))),
    (q.Y(1), P("IYI")),
    (q.T(2), np.kron(np.eye(4), np.diag([1, np.exp(0.25j * np.pi)]))),
    (q.SX(2), scipy.linalg.sqrtm(P("IIX"))),
    (q.P(0.7, 0), np.kron(np.diag([1, np.exp(0.7j)]), np.eye(4))),
    (q.U(np.pi / 2, 0.0, np.pi, 0), np.kron((P("X") + P("Z")) / np.sqrt(2), np.eye(4))),
    (q.CNOT(0, 1), np.kron(np.eye(4)[[0, 1, 3, 2]], np.eye(2))),
    (q.CRZ(0.6, 1, 2), np.kron(np.eye(2), np.diag(np.exp(0.3j * np.array([0, 0, -1, 1]))))),
    (q.SWAP(0, 2), np.eye(8)[[0, 4, 2, 6, 1, 5, 3, 7]]),
    (q.Toffoli(2, 0, 1), np.eye(8)[[0, 1, 2, 3, 4, 7, 6, 5]]),
    (q.CP(0.2, 0, 2), np.diag(np.exp(0.2j * np.array([0, 0, 0, 0, 0, 1, 0, 1])))),
]
HAMILTONIAN = {"XYZ": 0.3, "ZZI": 0.2, "YIY": -0.4, "III": 0.1}


@pytest.fixture(scope="module")
def matrices():
    """Each gate, its inverse and its conjugate as matrices, by one program."""

    @jax.jit
    def build(gates):
        identity = jnp.eye(8, dtype=complex).reshape(*DIMS, 8)
        return [
            [g.apply(identity).reshape(8, 8) for g in (gate, gate.inverse(), gate.conjugate())]
            for gate in gates
        ]

    return build([gate for gate, _ in GATES])


def test_gates_are_their_matrices(matrices):
    for (gate, expected), (u, inverse, conjugate) in zip(GATES, matrices, strict=True):
        np.testing.assert_allclose(u, expected, atol=1e-14, err_msg=str(gate))
        np.testing.assert_allclose(inverse, expected.conj().T, atol=1e-14, err_msg=str(gate))
        np.testing.assert_allclose(conjugate, expected.conj(), atol=1e-14, err_msg=str(gate))


def test_a_circuit_and_its_derivative():
    # One gate of each kind: the derivative's checks compile many programs.
    chosen = [GATES[k] for k in (1, 2, 8, 9, 10, 13)]
    circuit = q.Circuit(*(gate for gate, _ in chosen))
    h = q.PauliSum(HAMILTONIAN)
    start = q.Circuit(q.H(0), q.RY(0.3, 1), q.RX(0.5, 2))(q.StateVector.basis(DIMS))

    def energy(circuit, amplitudes):
        return circuit(q.StateVector.unnormalized(amplitudes)).expectation(h)

    whole = np.linalg.multi_dot([u for _, u in reversed(chosen)])
    psi = whole @ np.asarray(start.amplitudes).reshape(-1)
    dense = sum(c * P(s) for s, c in HAMILTONIAN.items())
    np.testing.assert_allclose(
        circuit(start).expectation(h), np.vdot(psi, dense @ psi).real, atol=1e-14
    )
    # The rule that runs backwards, in both modes, by angles and by amplitudes.
    tree = {"circuit": circuit, "start": start.amplitudes}
    pk.testing.check_gradient(lambda at: energy(at["circuit"], at["start"]), tree, directions=1)


def test_batches_of_angles_are_members():
    def prepared(angle):
        return q.Circuit(q.RX(angle, 0), q.CNOT(0, 1))(q.StateVector.basis((2, 2))).probabilities(1)

    angles = jnp.array([0.3, 1.1])
    np.testing.assert_allclose(
        jax.vmap(prepared)(angles)[:, 1], np.sin(np.array([0.3, 1.1]) / 2) ** 2, atol=1e-14
    )


def test_measures_of_an_entangled_state():
    ghz = q.Circuit(q.H(0), q.CNOT(0, 1), q.CNOT(1, 2))
    state = ghz(q.StateVector.basis(DIMS))
    np.testing.assert_allclose(state.entropy((0, 2)), np.log(2), atol=1e-14)
    assert state.entropy() == 0
    np.testing.assert_allclose(state.reduced(1).matrix(), np.eye(2) / 2, atol=1e-14)
    shots = np.asarray(state.sample(1, 400))
    assert np.all(shots == shots[:, :1])
    assert 150 < shots[:, 0].sum() < 250
    outcome, after = q.measure(state, 3, 1)
    np.testing.assert_allclose(after.probabilities()[(int(outcome[0]),) * 3], 1.0, atol=1e-14)
    np.testing.assert_allclose(q.reset(state, 3, (0, 1, 2)).probabilities()[0, 0, 0], 1, atol=1e-14)


def test_order_of_subsystems():
    """Subsystem 0 is the leading axis and the leftmost digit."""
    state = q.StateVector.basis((2, 3), (1, 2))
    assert np.asarray(state.amplitudes).reshape(-1)[1 * 3 + 2] == 1
    assert np.asarray(state.sample(0, 2)).tolist() == [[1, 2], [1, 2]]
    assert state.probabilities((1, 0)).shape == (3, 2)
    # One number is one subsystem.
    assert q.StateVector.basis(3, 1).amplitudes.tolist() == [0, 1, 0]


def test_ghz_under_depolarizing_noise_and_its_trajectories():
    p = 0.1
    ghz = q.Circuit(q.H(0), q.CNOT(0, 1), q.CNOT(1, 2))
    noisy = q.Circuit(ghz, [q.Depolarizing(p, k) for k in range(3)])
    start = q.StateVector.basis(DIMS)
    pure, mixed = ghz(start), noisy(start.density())
    expected = 0.5 * ((1 - p / 2) ** 3 + (p / 2) ** 3 + (1 - p) ** 3)
    np.testing.assert_allclose(q.fidelity(pure, mixed), expected, atol=1e-14)
    np.testing.assert_allclose(q.fidelity(mixed, mixed), 1, atol=1e-7)
    draw = jax.jit(jax.vmap(lambda k: noisy.sample_noise(start, k).amplitudes))
    psi = np.asarray(draw(jax.random.split(jax.random.key(1), 2000))).reshape(2000, -1)
    mean = psi.T @ psi.conj() / 2000
    assert np.max(np.abs(mean - np.asarray(mixed.matrix()))) < 0.03


CHANNELS = {
    "amplitude damping": q.AmplitudeDamping(0.3, 0),
    "phase damping": q.PhaseDamping(0.3, 0),
    "bit flip": q.BitFlip(0.3, 0),
    "two errors": q.PauliChannel({"X": 0.1, "Z": 0.2}, 0),
    "depolarizing": q.Depolarizing(0.3, 0),
    "reset": q.Reset(0),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_channels_keep_the_trace(name):
    channel = CHANNELS[name]
    k = np.asarray(channel.operators())
    total = np.einsum("k,kba,kbc->ac", np.asarray(channel.weights()), k.conj(), k)
    np.testing.assert_allclose(total, np.eye(2), atol=1e-14)


def test_amplitude_damping_of_a_superposition():
    rho = q.Circuit(q.H(0), q.AmplitudeDamping(0.3, 0))(q.DensityMatrix.basis((2,))).matrix()
    root = 0.5 * np.sqrt(0.7)
    np.testing.assert_allclose(rho, [[0.65, root], [root, 0.35]], atol=1e-14)


def test_a_probability_has_a_derivative_at_zero():
    def fidelity(channel):
        rho = q.Circuit(q.X(0), channel)(q.DensityMatrix.basis((2,)))
        return rho.probabilities()[1]

    slope = jax.grad(fidelity)
    np.testing.assert_allclose(slope(q.Depolarizing(0.0, 0)).probability, -0.5, atol=1e-14)
    np.testing.assert_allclose(slope(q.AmplitudeDamping(0.0, 0)).probability, -1, atol=1e-14)


def test_a_circuit_is_fitted():
    """Angles that make a Bell state from |00⟩."""
    start = q.StateVector.basis((2, 2))
    bell = q.Circuit(q.H(0), q.CNOT(0, 1))(start)
    circuit = q.Circuit(q.RY(0.4, 0), q.CRX(0.5, 0, 1), q.RZ(0.1, 1))
    fit = pk.fit(
        lambda c: 1 - q.fidelity(c(start), bell),
        circuit,
        where=lambda c: [g.angle for g in (c.gates[0], c.gates[1].gate, c.gates[2])],
        method=pk.fitting.BFGS(),
        progress=False,
    )
    assert q.fidelity(fit.model(start), bell) > 1 - 1e-6


def test_single_precision_stays_single():
    start = q.StateVector.basis((2, 2), dtype=jnp.complex64)
    circuit = q.Circuit(q.H(0), q.RX(0.3, 1), q.U(0.1, 0.2, 0.3, 0), q.CRZ(0.3, 0, 1), q.P(0.2, 1))
    assert circuit(start).amplitudes.dtype == jnp.complex64
    noisy = q.Circuit(circuit, q.Depolarizing(0.1, 0))(start.density())
    assert noisy.elements.dtype == jnp.complex64


class Own(q.AbstractGate):
    """diag(1, factor e^{iφ}), whose inverse and conjugate turn back by `back` and `mirror`."""

    angle: jax.Array = pk.param()
    sites: tuple[int, ...] = pk.static(default=(0,))
    factor: float = pk.static(default=1.0)
    back: float = pk.static(default=-1.0)
    mirror: float = pk.static(default=-1.0)

    def apply(self, x):
        real = jnp.stack([jnp.ones_like(self.angle), self.factor * jnp.cos(self.angle)])
        imaginary = jnp.stack([0 * self.angle, self.factor * jnp.sin(self.angle)])
        return q.apply_matrix(jnp.diag(jax.lax.complex(real, imaginary)), x, self.sites)

    def inverse(self):
        return dataclasses.replace(self, angle=self.back * self.angle)

    def conjugate(self):
        return dataclasses.replace(self, angle=self.mirror * self.angle)


class Dephasing(q.AbstractChannel):
    """Z with a probability, in words of one's own."""

    probability: jax.Array = pk.param()
    share: float = pk.static(default=1.0)
    sites: tuple[int, ...] = pk.static(default=(0,))

    def weights(self):
        return jnp.stack([1 - self.probability, self.share * self.probability])

    def operators(self):
        return jnp.array([np.eye(2), q.pauli_matrix("Z")], complex)


def noisy_of(operation):
    return q.Circuit(q.H(0), operation)(q.StateVector.basis((2,)).density())


def test_gates_and_channels_of_ones_own():
    x = q.PauliSum({"X": 1.0})
    turned = lambda angle: q.Circuit(q.H(0), Own(angle))(q.StateVector.basis((2,))).expectation(x)
    value, slope = jax.value_and_grad(turned)(0.4)
    np.testing.assert_allclose([value, slope], [np.cos(0.4), -np.sin(0.4)], atol=1e-14)
    np.testing.assert_allclose(turned(0.4), value, atol=1e-14)
    np.testing.assert_allclose(noisy_of(Dephasing(0.1)).expectation(x), 0.8, atol=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: q.Unitary([[1, 1], [0, 1]], 0), pk.errors.ParameterError, "unitary"),
        (lambda: q.Kraus([[[1, 0], [0, 0.5]]], 0), pk.errors.ParameterError, "complete"),
        (lambda: q.StateVector([1.0, 1.0]), pk.errors.ParameterError, "not 1"),
        (lambda: q.StateVector([1.0, 0, 0], (2, 2)), pk.errors.ShapeError, "3 amplitudes"),
        (
            lambda: q.DensityMatrix(np.array([[0.5, 0.5], [0, 0.5]])),
            pk.errors.ParameterError,
            "Hermitian",
        ),
        (lambda: q.PauliSum({"ZQ": 1.0}), pk.errors.ParameterError, "Pauli string"),
        (lambda: q.PauliSum({"Z0 Z1": 1.0}), pk.errors.ParameterError, "qubits="),
        (
            lambda: q.StateVector.basis((2, 2)).expectation(q.PauliSum({"Z": 1.0})),
            pk.errors.ShapeError,
            "write I for a qubit",
        ),
        # Of ρ, axes beyond the last subsystem are columns.
        (
            lambda: q.DensityMatrix.basis((2, 2)).expectation(2 * q.LocalOperator(np.eye(2), 2)),
            pk.errors.ShapeError,
            r"subsystems \[2\] of a state of 2",
        ),
        (
            lambda: q.StateVector.basis((2, 2)).expectation(q.LocalOperator(np.eye(2), -1)),
            pk.errors.ShapeError,
            r"subsystems \[-1\]",
        ),
        (
            lambda: q.LocalOperator(np.eye(2), 0) * jnp.array([1.0, 2.0]),
            pk.errors.ShapeError,
            r"one number; got shape \[2\]",
        ),
        (
            lambda: q.DensityMatrix.basis((2,)).expectation(q.PauliSum({"ZZ": 1.0}) * 2.0),
            pk.errors.ShapeError,
            "Pauli strings of 2 qubits",
        ),
        (lambda: q.StateVector.basis((2, 2), 1), pk.errors.ShapeError, "one for each"),
        (lambda: q.BitFlip(1.5, 0), pk.errors.ParameterError, "0 … 1"),
        (lambda: q.X(-1), pk.errors.ShapeError, "from 0"),
        (lambda: q.Kraus([np.eye(2), [[1]]], 0), pk.errors.ShapeError, "one size"),
        (
            lambda: q.fidelity(q.StateVector.basis((2,)), q.StateVector.basis((2, 2))),
            pk.errors.ShapeError,
            "no fidelity",
        ),
        (lambda: q.CNOT(0, 0), pk.errors.ShapeError, "named once"),
        # What RX(0, 0.3), and StateVector.entropy(0.0), ask without the checks of types.
        (lambda: as_whole((0.3,)), pk.errors.ShapeError, "follow the angles"),
        (lambda: noisy_of(Own(0.1, factor=2.0)), pk.errors.DeclarationError, "U†U"),
        (lambda: noisy_of(Own(0.1, back=1.0)), pk.errors.DeclarationError, "`inverse` does not"),
        (lambda: noisy_of(Own(0.1, mirror=1.0)), pk.errors.DeclarationError, "`conjugate` has not"),
        (lambda: noisy_of(Dephasing(0.1, 2.0)), pk.errors.ParameterError, "keeps the trace"),
        (lambda: noisy_of(Dephasing(-0.1)), pk.errors.ParameterError, "not negative"),
        (
            lambda: q.Circuit(q.X(2))(q.StateVector.basis((2, 2))),
            pk.errors.ShapeError,
            "3 subsystems",
        ),
        (
            lambda: q.Circuit(q.BitFlip(0.1, 0))(q.StateVector.basis((2,))),
            pk.errors.DeclarationError,
            "density",
        ),
        (
            lambda: q.Circuit(q.X(0))(q.StateVector.basis((3,))),
            pk.errors.ShapeError,
            r"\[3 3\]",
        ),
    ],
)
def test_mistakes_are_named(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_gates_are_leaves_only_where_they_have_angles():
    circuit = q.Circuit(q.H(0), q.CNOT(0, 1), q.RX(0.1, 0), q.Unitary(np.eye(2), 1))
    assert len(jax.tree.leaves(eqx.filter(circuit, eqx.is_inexact_array))) == 1


def layered(angles):
    """Rotations and a chain of controlled gates, layer by layer: as variational circuits are."""
    n = angles.shape[1]
    return q.Circuit(
        [
            [*(q.RY(x[k], k) for k in range(n)), *(q.CZ(k, k + 1) for k in range(n - 1))]
            for x in angles
        ]
    )


def test_gradients_of_deep_circuits_compile_in_seconds_and_store_no_states():
    """As many instructions as there are blocks of gates; some states at a time, however many gates."""
    n = 12

    def compiled(depth):
        def energy(angles):
            state = layered(angles)(q.StateVector.basis((2,) * n))
            return state.expectation(q.PauliSum({"X0": 1.0}, n))

        return jax.jit(jax.grad(energy)).lower(jnp.ones((depth, n))).compile()

    def temporaries(program):
        return program.memory_analysis().temp_size_in_bytes / (16 * 2**n)

    shallow, deep = compiled(1), compiled(3)
    # Storing the states between would take one more for each of the 46 gates more.
    assert temporaries(deep) < temporaries(shallow) + 10
    assert deep.as_text().count(" dot(") < 2.5 * 46


def test_gates_are_fused_in_an_order_that_gives_the_same_state():
    """Random gates on random subsystems, some too large for a block, against one gate at a time."""
    rng = np.random.default_rng(3)
    dims, gates = (2, 3, 2, 2, 2), []
    qubits = [0, 2, 3, 4]
    for _ in range(40):
        a, b, c = rng.permutation(qubits)[:3].tolist()
        u = np.linalg.qr(rng.normal(size=(6, 6)) + 1j * rng.normal(size=(6, 6)))[0]
        choices = [q.H(a), q.RZ(0.3, b), q.CNOT(a, b), q.Toffoli(a, b, c), q.Unitary(u, 1, c)]
        choices += [q.RXX(0.4, a, c), q.PauliRotation(0.2, "XYZZ", *qubits), q.CRX(0.1, c, a)]
        gates.append(choices[rng.integers(len(choices))])
    psi = rng.normal(size=dims) + 1j * rng.normal(size=dims)

    @jax.jit
    def one_by_one(x):
        for gate in gates:
            x = jax.lax.optimization_barrier(gate.apply(x))
        return x

    expected = one_by_one(jnp.asarray(psi))
    state = q.Circuit(gates)(q.StateVector.unnormalized(psi))
    np.testing.assert_allclose(state.amplitudes, expected, atol=1e-13)


def test_large_matrices_are_contracted():
    """Beyond eight rows, on subsystems that are no neighbors."""
    rng = np.random.default_rng(0)
    matrix, psi = rng.normal(size=(9, 9)), rng.normal(size=(3, 2, 3))
    state = q.StateVector.unnormalized(psi.astype(complex))
    found = q.LocalOperator(matrix, 2, 0).apply(state.amplitudes)
    expected = np.einsum("caed,dbe->abc", matrix.reshape(3, 3, 3, 3), psi)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_many_outcomes_are_all_drawn_in_single_precision():
    sites = 13
    uniform = q.StateVector(jnp.full((2,) * sites, 2.0 ** (-sites / 2), jnp.complex64))
    drawn = np.asarray(uniform.sample(0, 40_000))
    np.testing.assert_allclose(drawn.mean(0), 0.5, atol=0.02)
    counts = np.bincount(drawn @ (1 << np.arange(sites)), minlength=2**sites)
    # Poisson's: mean and variance alike.
    np.testing.assert_allclose(counts.var() / counts.mean(), 1.0, atol=0.1)
    weights = jnp.zeros(2**sites, jnp.complex64).at[jnp.array([5, 6000])].set(0.5**0.5)
    drawn = np.asarray(q.StateVector(weights.reshape((2,) * sites)).sample(1, 500))
    places = drawn @ (1 << np.arange(sites)[::-1])
    assert set(places.tolist()) == {5, 6000}
