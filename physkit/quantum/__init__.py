"""Qubits and open systems: states of subsystems of any dimension, gates, noise, equations of motion.

Conventions: subsystem 0 is the leading axis of a state and the leftmost digit of an outcome; ħ = 1; angles are
radians; a rotation by θ is exp(−i θ/2 P). Wave functions on grids are fields (`fields.equations.Schroedinger`).
"""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._channels import (
        AbstractChannel as AbstractChannel,
        AmplitudeDamping as AmplitudeDamping,
        BitFlip as BitFlip,
        Depolarizing as Depolarizing,
        Kraus as Kraus,
        PauliChannel as PauliChannel,
        PhaseDamping as PhaseDamping,
        PhaseFlip as PhaseFlip,
        Reset as Reset,
    )
    from ._contraction import apply_matrix as apply_matrix
    from ._density_matrix import DensityMatrix as DensityMatrix
    from ._envelopes import (
        GaussianPulse as GaussianPulse,
        LinearRamp as LinearRamp,
        Oscillation as Oscillation,
        PiecewisePulse as PiecewisePulse,
    )
    from ._evolution import (
        AbstractEvolution as AbstractEvolution,
        Jump as Jump,
        Lindblad as Lindblad,
        UnitaryEvolution as UnitaryEvolution,
    )
    from ._gates import (
        AbstractGate as AbstractGate,
        Controlled as Controlled,
        EulerRotation as EulerRotation,
        PauliRotation as PauliRotation,
        Phase as Phase,
        Unitary as Unitary,
    )
    from ._ladder import (
        anharmonicity as anharmonicity,
        create as create,
        destroy as destroy,
        number as number,
    )
    from ._measurement import fidelity as fidelity, measure as measure, reset as reset
    from ._operators import (
        AbstractOperator as AbstractOperator,
        Driven as Driven,
        LocalOperator as LocalOperator,
        OperatorSum as OperatorSum,
        Scaled as Scaled,
    )
    from ._pauli_sum import PauliSum as PauliSum, pauli_matrix as pauli_matrix
    from ._quantum_state import AbstractQuantumState as AbstractQuantumState
    from ._standard_gates import (
        CNOT as CNOT,
        CP as CP,
        CRX as CRX,
        CRY as CRY,
        CRZ as CRZ,
        CZ as CZ,
        FIXED_GATES as FIXED_GATES,
        RX as RX,
        RXX as RXX,
        RY as RY,
        RYY as RYY,
        RZ as RZ,
        RZZ as RZZ,
        SWAP as SWAP,
        SX as SX,
        H as H,
        P as P,
        S as S,
        T as T,
        Toffoli as Toffoli,
        U as U,
        X as X,
        Y as Y,
        Z as Z,
        fixed_gate as fixed_gate,
    )
    from ._state_vector import StateVector as StateVector
    from .circuits._circuit import Circuit as Circuit
    from .circuits._reversible_circuit import apply_gates as apply_gates
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
