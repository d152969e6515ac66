"""Faults as data: bits that are set inside the traced loop, and the error and advice of each."""

import enum

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
from ._module import Module, data


class Fault(enum.IntFlag):
    """What can go wrong inside a traced program, one bit each.

    A traced program can neither raise nor print without a callback, which would cost more than the step.
    """

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
    FORCE_RANGE = 131072
    UNRESOLVED = 262144
    CONSTRAINT = 524288
    NET_CHARGE = 1048576
    COUNT_RANGE = 2097152


# In the order in which errors are raised where several bits are set: causes before what follows from them.
# A cutoff that is too large, say, also makes the state NaN.
ADVICE: dict[Fault, tuple[type[PhyskitError], str]] = {
    Fault.CUTOFF: (
        CutoffError,
        "a cutoff (cutoff= of a force, plus skin= where one was given) is beyond the minimum-image limit of "
        "the box, half of its smallest height (box.max_cutoff(d) is the number); use a larger box or a shorter "
        "cutoff, or leave out skin=, which then takes what the box leaves",
    ),
    Fault.BOND: (
        CutoffError,
        "a bond or an angle joins particles of slabs that are not next to each other; use fewer devices, or "
        "check whether a molecule has torn",
    ),
    Fault.CONSTRAINT: (
        StepSizeError,
        "constrained particles are not where their constraints hold. At the start: constrain(particles) puts "
        "them there. In a run: a drift could not meet them, the step is too long or the constraints contradict "
        "each other; reduce dt, call minimize first, or give more max_iterations",
    ),
    Fault.MASS: (ParameterError, "a mass is zero or negative"),
    Fault.SPACE: (ParameterError, "a box length or volume is zero or negative"),
    Fault.NET_CHARGE: (
        ParameterError,
        "the charges do not add up to 0, and the energy of a periodic cell with a net charge is infinite; add "
        "counterions, or a uniform charge that neutralizes the cell: background=True",
    ),
    Fault.OVERLAP: (
        OverlapError,
        "particles overlap, closer than where the potential and its force are finite (its "
        "force_over_distance(r²) says where); start from a lattice or call minimize first. Or "
        "numbers leave the range of their type (float32 ends at 3e38): take units in which they are near 1",
    ),
    Fault.FORCE_RANGE: (
        RangeError,
        "forces are larger or smaller than the numbers of the state's precision (float32: 1e-38 to 3e38); "
        "take units in which masses and distances are of order 1, or float64",
    ),
    Fault.DISPLACEMENT: (
        StepSizeError,
        "a particle moved further between two force evaluations than half the cutoff (over devices: in a "
        "step further than the migration margin); "
        "the time step is too large, or the start has overlaps: reduce dt or call minimize first",
    ),
    Fault.EXACT_SUM_RANGE: (
        RangeError,
        "an exact pair sum left its range; give a larger quantum, or exact=False",
    ),
    Fault.FIXED_POINT_RANGE: (
        RangeError,
        "a number left the range of the fixed-point numbers that Reversible() computes with: a particle "
        "crossed half the box in one step, flew far out of open space, or a field grew; reduce dt, or "
        "give Reversible(range_factor=…), or Reversible(smallest_range=…) for a field that is driven from rest",
    ),
    Fault.COUNT_RANGE: (
        RangeError,
        "a copy number left the range of whole numbers, 0 to 2³¹ − 1: does something grow without bound? Take "
        "a smaller volume, or RK4(RateEquations(network)), which moves concentrations",
    ),
    Fault.REVERSAL: (
        NotReversible,
        "the backward pass did not return to the start bit by bit; a term may depend on velocities, on the "
        "order of particles, or be compiled differently in the backward pass",
    ),
    Fault.OVERFLOW: (
        CapacityError,
        "a cache (neighbor list) overflowed; `run` grows it by itself, `simulate` needs "
        "init(simulation, state, capacity=…)",
    ),
    Fault.SOLVER: (
        StepSizeError,
        "what is solved inside the step gave up: it ran out of steps or events, or did not converge; raise "
        "max_steps of an adaptive solver (loosen rtol and atol), max_events of reactions, or reduce dt",
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
    Fault.UNRESOLVED: (
        SimulationDiverged,
        "the state is about to diverge: dt is too large for what is advanced explicitly (advection, reactions, "
        "functions of the state), which changes the state in a step by more than its size; "
        "reduce dt, or on a lattice, which dt belongs to, the velocity",
    ),
    Fault.NOT_FINITE: (SimulationDiverged, "the state is not finite"),
}


class Faults(Module):
    """Fault bits of a term, as a node of its cache. Sticky: once set, a bit stays."""

    bits: Int[Array, "..."] = data()

    @staticmethod
    def none() -> "Faults":
        """No fault."""
        return Faults(jnp.zeros((), jnp.int32))

    def set_if(self, fault: Fault, where: Bool[Array, ""]) -> "Faults":
        """These faults, and `fault` if `where` holds."""
        return Faults(self.bits | jnp.where(where, jnp.int32(fault), jnp.int32(0)))
