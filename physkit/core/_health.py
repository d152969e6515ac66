"""Faults as data: set inside the traced loop, judged on the host at a chunk's end."""

import enum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from ._errors import (
    CapacityError,
    CutoffError,
    NotReversible,
    ObserverError,
    OverlapError,
    ParameterError,
    PhyskitError,
    RangeError,
    SamplingError,
    SimulationDiverged,
    StepSizeError,
)
from ._growable import has_overflow
from ._module import Module, data


class Fault(enum.IntFlag):
    """What can go wrong inside a traced program, one bit each."""

    NOT_FINITE = 1
    OVERFLOW = 2
    CUTOFF = 4
    MASS = 8
    OVERLAP = 16
    DISPLACEMENT = 32
    EXACT_SUM_RANGE = 64
    GUARD = 128
    SPACE = 256
    SOLVER = 512
    POSITIVITY = 1024
    COURANT = 2048
    FIXED_POINT_RANGE = 4096
    REVERSAL = 8192
    LOW_ESS = 16384
    NOT_REPLICATED = 32768
    BOND = 65536


ADVICE: dict[Fault, tuple[type[PhyskitError], str]] = {
    Fault.CUTOFF: (
        CutoffError,
        "a cutoff (plus skin) reaches beyond the minimum-image limit of the box; "
        "use a larger box or a shorter cutoff",
    ),
    Fault.BOND: (
        CutoffError,
        "a bond or an angle joins particles of slabs that are not next to each other; use fewer devices, or "
        "look whether something has torn",
    ),
    Fault.MASS: (ParameterError, "a mass is zero or negative"),
    Fault.SPACE: (ParameterError, "a box length or volume is zero or negative"),
    Fault.OVERLAP: (
        OverlapError,
        "particles overlap, where the force is not finite; start from a lattice or call minimize first",
    ),
    Fault.DISPLACEMENT: (
        StepSizeError,
        "a particle moved further between two force evaluations than half the cutoff (over devices: in a "
        "step further than their slabs' margin); "
        "the time step is too large, or the start has overlaps: reduce dt or call minimize first",
    ),
    Fault.EXACT_SUM_RANGE: (
        RangeError,
        "an exact pair sum left the range of its integers; give a larger quantum, or exact=False",
    ),
    Fault.FIXED_POINT_RANGE: (
        RangeError,
        "a number left the range of the lattice that Reversible() computes on: a particle crossed half "
        "the box in one step, flew far out of open space, or a field grew; reduce dt, or give "
        "Reversible(room=…)",
    ),
    Fault.REVERSAL: (
        NotReversible,
        "walking back did not return to the start bit by bit; a term may depend on velocities, on the "
        "order of particles, or be compiled differently on the way back",
    ),
    Fault.OVERFLOW: (
        CapacityError,
        "a cache (neighbor list) overflowed; `run` grows it by itself, `simulate` needs "
        "start(..., capacity=...)",
    ),
    Fault.SOLVER: (
        StepSizeError,
        "an adaptive solver inside the step gave up: it ran out of steps or did not converge; "
        "raise max_steps, loosen rtol and atol, or reduce dt",
    ),
    Fault.COURANT: (
        StepSizeError,
        "waves cross more than the allowed part of a cell in a step; reduce dt, or let "
        "CFLSubsteps(…, max_substeps=…) take more sub-steps",
    ),
    Fault.POSITIVITY: (
        SimulationDiverged,
        "a density, depth or pressure is not positive; reduce dt, or take a more robust scheme: "
        "MUSCL(Minmod()) or PiecewiseConstant(), HLL()",
    ),
    Fault.LOW_ESS: (
        SamplingError,
        "the samples hardly overlap with the parameters asked for, so that a few of them carry all "
        "weight; draw new samples there, take smaller steps, or smaller systems",
    ),
    Fault.NOT_REPLICATED: (
        ObserverError,
        "what is recorded, or a number of the state, differs from device to device: sums, means and extremes "
        "over the domain are "
        "field.integral(), field.mean(), field.max(), grid.sum(x), particles.sum(x)",
    ),
    Fault.GUARD: (SimulationDiverged, "a guard is broken"),
    Fault.NOT_FINITE: (SimulationDiverged, "the state is not finite"),
}


class Faults(Module):
    """A term's own fault bits, a node of its cache; sticky: once set, a bit stays."""

    bits: Int[Array, "..."] = data()

    @staticmethod
    def none() -> "Faults":
        return Faults(jnp.zeros((), jnp.int32))

    def set_if(self, fault: Fault, where: Bool[Array, ""]) -> "Faults":
        """These faults, and `fault` if `where`."""
        return Faults(self.bits | jnp.where(where, jnp.int32(fault), jnp.int32(0)))


class Health(Module):
    """How a stretch of simulation ended: fault bits, scalar or one per member of a batch."""

    bits: Int[Array, "..."] = data()

    def faults(self) -> Fault:
        """Everything that is wrong with any member (host only)."""
        import numpy as np

        return Fault(int(np.bitwise_or.reduce(np.asarray(self.bits), axis=None)))

    @property
    def ok(self) -> bool:
        """Nothing is wrong (host only)."""
        return self.faults() == Fault(0)

    def check(self, when: str = "", **context: Any) -> None:
        """Raise the error of the most telling fault, if there is one (host only)."""
        found = self.faults()
        for fault, (error, advice) in ADVICE.items():
            if fault in found:
                message = f"{when}: {advice}" if when else advice
                raise error(message, **context) if error is SimulationDiverged else error(message)


def all_finite(tree: Any) -> Bool[Array, ""]:
    """Whether every floating leaf of `tree` is finite everywhere."""
    checks = [jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(tree) if eqx.is_inexact_array(x)]
    return jnp.all(jnp.stack(checks)) if checks else jnp.array(True)


def collect_faults(caches: Any, *faults: tuple[Fault, Bool[Array, ""]]) -> Health:
    """The health of a run from the faults that its caches carry, and from those given."""
    bits = jnp.zeros((), jnp.int32)
    for node in jax.tree.leaves(caches, is_leaf=_is_faults):
        if _is_faults(node):
            bits = bits | node.bits
    for fault, where in ((Fault.OVERFLOW, has_overflow(caches)), *faults):
        bits = bits | jnp.where(where, jnp.int32(fault), jnp.int32(0))
    return Health(bits)


def _is_faults(node: Any) -> bool:
    return isinstance(node, Faults)
