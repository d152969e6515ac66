"""Circuits from and to OpenQASM 3."""

import math
from typing import Any

import numpy as np

from physkit.core import ParameterError, concrete_value, import_extra
from physkit.quantum import (
    FIXED_GATES,
    AbstractGate,
    Circuit,
    Controlled,
    EulerRotation,
    PauliRotation,
    Phase,
    Unitary,
    fixed_gate,
)

_ROTATIONS = {"rx": "X", "ry": "Y", "rz": "Z", "rxx": "XX", "ryy": "YY", "rzz": "ZZ"}
_CONSTANTS = {"pi": math.pi, "π": math.pi, "tau": 2 * math.pi, "τ": 2 * math.pi, "euler": math.e}
# Controlled gates of stdgates.inc: name of the gate and how many controls it has.
_CONTROLLED = {
    "cx": ("x", 1), "CX": ("x", 1), "cy": ("y", 1), "cz": ("z", 1), "ch": ("h", 1), "cp": ("p", 1),
    "crx": ("rx", 1), "cry": ("ry", 1), "crz": ("rz", 1), "cswap": ("swap", 1), "ccx": ("x", 2),
    "cphase": ("p", 1),
}  # fmt: skip
_ANGLES = {"p": 1, "phase": 1, "u1": 1, "U": 3, "u3": 3} | dict.fromkeys(_ROTATIONS, 1)


def read_openqasm(text: str) -> Circuit:
    """The circuit of an OpenQASM 3 program: its gates on its qubits, in their order of declaration.

    It takes gates of stdgates.inc and U, with the modifiers `ctrl @` and `inv @`, on single qubits or
    registers, with angles of numbers, π, and + − · /. Measurements at the end are left out: `sample`
    draws outcomes.

    **Errors:** `MissingExtraError` without the package `openqasm3`; `ParameterError` for whatever else a
    program may hold (loops, conditions, gates of its own), with its line.
    """
    package = _require_package()
    try:
        program = package.parse(text)
    except Exception as error:
        why = (
            str(error).strip() or f"it begins with {text.strip()[:40]!r}; of a file, give its text"
        )
        raise ParameterError(f"this is no OpenQASM 3 program: {why}") from error
    reader = _Reader(package.ast)
    for statement in program.statements:
        reader.read(statement)
    if not reader.gates:
        raise ParameterError("the OpenQASM program has no gates")
    return Circuit(*reader.gates)


def write_openqasm(circuit: Circuit, qubits: int | None = None) -> str:
    """The circuit as an OpenQASM 3 program with stdgates.inc.

    **Arguments:** `circuit`: of qubits, with numbers as angles. `qubits`: their number; as many as it uses if
    left out.

    **Errors:** `MissingExtraError` without the package `openqasm3`, which checks what was written;
    `ParameterError` for channels, and for gates that OpenQASM has no name for.
    """
    package = _require_package()
    lines = ["OPENQASM 3.0;", 'include "stdgates.inc";']
    lines.append(f"qubit[{circuit.num_sites if qubits is None else qubits}] q;")
    for gate in circuit.gates:
        if not isinstance(gate, AbstractGate):
            raise ParameterError(f"OpenQASM has no noise: the circuit has a {type(gate).__name__}")
        where = ", ".join(f"q[{site}]" for site in gate.sites)
        lines.append(f"{_call(gate)} {where};")
    text = "\n".join(lines) + "\n"
    package.parse(text)
    return text


class _Reader:
    """Gates of a program, statement by statement."""

    def __init__(self, ast: Any):
        self.ast = ast
        self.registers: dict[str, range] = {}
        self.gates: list[AbstractGate] = []

    def read(self, statement: Any) -> None:
        ast = self.ast
        if isinstance(statement, ast.QubitDeclaration):
            first = sum(map(len, self.registers.values()))
            size = 1 if statement.size is None else int(self.number(statement.size))
            self.registers[statement.qubit.name] = range(first, first + size)
        elif isinstance(statement, ast.QuantumGate):
            self.read_gate(statement)
        elif not isinstance(
            statement,
            ast.Include
            | ast.ClassicalDeclaration
            | ast.QuantumMeasurementStatement
            | ast.QuantumBarrier,
        ):
            raise self.error(statement, f"{type(statement).__name__} is not read")

    def read_gate(self, statement: Any) -> None:
        angles = [self.number(a) for a in statement.arguments]
        operands = [self.qubits(q) for q in statement.qubits]
        length = max(map(len, operands), default=1)
        if any(len(sites) not in (1, length) for sites in operands):
            raise self.error(statement, "registers of different lengths")
        for k in range(length):
            sites = [sites[k % len(sites)] for sites in operands]
            self.gates.append(self.gate(statement, angles, sites))

    def gate(self, statement: Any, angles: list[float], sites: list[int]) -> AbstractGate:
        ast, controls, is_inverse = self.ast, 0, False
        for modifier in statement.modifiers:
            if modifier.modifier == ast.GateModifierName.inv:
                is_inverse = not is_inverse
            elif modifier.modifier == ast.GateModifierName.ctrl:
                controls += 1 if modifier.argument is None else int(self.number(modifier.argument))
            else:
                raise self.error(statement, f"the modifier {modifier.modifier.name} is not read")
        name, more = _CONTROLLED.get(statement.name.name, (statement.name.name, 0))
        controls += more
        if len(angles) != _ANGLES.get(name, 0):
            raise self.error(statement, f"{name} takes {_ANGLES.get(name, 0)} angles")
        targets = sites[controls:]
        if name in _ROTATIONS:
            gate: AbstractGate = PauliRotation(angles[0], _ROTATIONS[name], *targets)
        elif name in ("p", "phase", "u1"):
            gate = Phase(angles[0], *targets)
        elif name in ("U", "u3"):
            gate = EulerRotation(*angles, *targets)
        elif name in FIXED_GATES:
            gate = fixed_gate(name, *targets)
        else:
            raise self.error(statement, f"the gate {name!r} is not known")
        gate = gate.inverse() if is_inverse else gate
        return gate.controlled(*sites[:controls]) if controls else gate

    def qubits(self, operand: Any) -> list[int]:
        """Numbers of the qubits that an operand names."""
        ast = self.ast
        name = operand.name if isinstance(operand, ast.Identifier) else operand.name.name
        if name not in self.registers:
            raise self.error(operand, f"no qubits are called {name!r}")
        register = self.registers[name]
        if isinstance(operand, ast.Identifier):
            return list(register)
        if len(operand.indices) != 1 or len(operand.indices[0]) != 1:
            raise self.error(operand, "a qubit has one index")
        index = int(self.number(operand.indices[0][0]))
        if not 0 <= index < len(register):
            raise self.error(operand, f"{name} has qubits 0 … {len(register) - 1}; got {index}")
        return [register[index]]

    def number(self, node: Any) -> float | int:
        """A constant expression."""
        ast = self.ast
        if isinstance(node, ast.IntegerLiteral | ast.FloatLiteral):
            return node.value
        if isinstance(node, ast.Identifier) and node.name in _CONSTANTS:
            return _CONSTANTS[node.name]
        if isinstance(node, ast.UnaryExpression) and node.op.name == "-":
            return -self.number(node.expression)
        if isinstance(node, ast.BinaryExpression) and node.op.name in ("+", "-", "*", "/", "**"):
            a, b = self.number(node.lhs), self.number(node.rhs)
            if node.op.name == "/" and b == 0:
                raise self.error(node, "a division by zero")
            if node.op.name == "**":
                return a**b
            return {"+": a + b, "-": a - b, "*": a * b, "/": a / (b or 1)}[node.op.name]
        raise self.error(node, "an angle is made of numbers, pi and + - * / **")

    def error(self, node: Any, what: str) -> ParameterError:
        line = node.span.start_line if node.span is not None else "?"
        return ParameterError(f"OpenQASM, line {line}: {what}")


def _call(gate: AbstractGate) -> str:
    """A gate as it is called, without its qubits."""
    if isinstance(gate, Controlled):
        count = len(gate.controls)
        inner = _call(gate.gate)
        plain = {"x": "cx", "y": "cy", "z": "cz", "h": "ch", "swap": "cswap"}
        if count == 1 and inner in plain:
            return plain[inner]
        if count == 2 and inner == "x":
            return "ccx"
        if count == 1 and inner.startswith(("rx", "ry", "rz", "p(")):
            return f"c{inner}"
        return f"ctrl({count}) @ {inner}"
    if isinstance(gate, PauliRotation):
        names = {paulis: name for name, paulis in _ROTATIONS.items() if len(paulis) == 1}
        if gate.paulis in names:
            return f"{names[gate.paulis]}({_number(gate.angle)})"
    if isinstance(gate, Phase):
        return f"p({_number(gate.angle)})"
    if isinstance(gate, EulerRotation):
        return f"U({_number(gate.theta)}, {_number(gate.phi)}, {_number(gate.lam)})"
    if isinstance(gate, Unitary) and gate.name in FIXED_GATES:
        return gate.name
    raise ParameterError(
        f"OpenQASM's stdgates.inc has no gate for {gate}: write it by RX, RY, RZ, U and controlled gates"
    )


def _number(angle: Any) -> str:
    value = concrete_value(angle)
    if value is None:
        raise ParameterError("angles are written as numbers: not inside of jit, grad or vmap")
    return repr(float(np.asarray(value)))


def _require_package() -> Any:
    purpose = "reading and writing OpenQASM"
    import_extra("openqasm3.parser", "quantum", purpose)  # its own dependency may be missing
    return import_extra("openqasm3", "quantum", purpose)
