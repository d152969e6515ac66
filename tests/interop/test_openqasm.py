"""Circuits to OpenQASM 3 and back."""

import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit import quantum as q

PROGRAM = """OPENQASM 3.0;
include "stdgates.inc";
qubit[2] q;
qubit extra;
bit[2] c;
h q;
cx q[0], extra;
rz(pi/4) q[1];
ctrl(2) @ x q[0], q[1], extra;
inv @ s extra;
U(0.1, -0.2, 3*pi/2) q[0];
c = measure q;
"""


def test_a_program_is_read():
    pytest.importorskip("openqasm3.parser")
    circuit = pk.interop.read_openqasm(PROGRAM)
    expected = q.Circuit(
        q.H(0),
        q.H(1),
        q.CNOT(0, 2),
        q.RZ(np.pi / 4, 1),
        q.Toffoli(0, 1, 2),
        q.S(2).inverse(),
        q.U(0.1, -0.2, 1.5 * np.pi, 0),
    )
    start = q.StateVector.basis((2, 2, 2))
    np.testing.assert_allclose(circuit(start).amplitudes, expected(start).amplitudes, atol=1e-12)


def test_what_is_written_is_read_as_the_same():
    pytest.importorskip("openqasm3.parser")
    circuit = q.Circuit(
        q.H(0), q.T(1), q.CNOT(0, 1), q.CRZ(0.3, 1, 2), q.Toffoli(0, 1, 2), q.SWAP(0, 2),
        q.CP(0.4, 0, 1), q.U(0.1, 0.2, 0.3, 2), q.RX(0.7, 2), q.SX(1), q.Z(0).controlled(1, 2),
    )  # fmt: skip
    again = pk.interop.read_openqasm(pk.interop.write_openqasm(circuit))
    start = q.Circuit(q.RY(0.3, 0), q.RY(0.4, 1))(q.StateVector.basis((2, 2, 2)))
    np.testing.assert_allclose(again(start).amplitudes, circuit(start).amplitudes, atol=1e-6)
    assert again.gates[3].gate.angle.dtype == jnp.result_type(float)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("qubit q;\nfor int i in [0:3] { x q; }", "line 2: ForInLoop"),
        ("qubit q;\nfoo q;", "'foo' is not known"),
        ("qubit[2] q;\nx q[2];", "qubits 0 … 1"),
        ("qubit q;\nrx q;", "1 angles"),
    ],
)
def test_what_is_not_read_is_named(text, says):
    pytest.importorskip("openqasm3.parser")
    with pytest.raises(pk.errors.ParameterError, match=says):
        pk.interop.read_openqasm(text)


def test_noise_is_not_written():
    pytest.importorskip("openqasm3.parser")
    with pytest.raises(pk.errors.ParameterError, match="no noise"):
        pk.interop.write_openqasm(q.Circuit(q.BitFlip(0.1, 0)))


def test_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openqasm3", None)
    with pytest.raises(pk.errors.MissingExtraError, match=r"physkit\[quantum\]"):
        pk.interop.read_openqasm("qubit q;")
