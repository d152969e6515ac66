"""The adjoint that stores no states: it steps back from the last one, bit by bit."""

import math

from physkit.core import (
    Frame,
    ParameterError,
    PhyskitError,
    PyTree,
    State,
    fusion_barrier,
    static,
)

from ..adjoint._adjoint import AbstractAdjoint, Direct, LoopBody, MemoryEstimate
from ..loop._carry import Carry
from ..loop._simulation import Simulation
from ._custom_vjp import advance_reversibly, explain_forward_mode
from ._fixed_point_state import to_fixed_point
from ._forward import prepare_reproducibly


class Reversible(AbstractAdjoint):
    """Steps back from the last state to the same bits: memory for derivatives ∝ 1, whatever the steps.

        x' = x + round(dt·v),   v' = v + round(dt·F(x')/m)   on integers, which subtract exactly

    Positions are fractions of the box and velocities multiples of a tiny quantum, both integers of 64
    bits: each drift and kick is an exact shear, reversed by the same step with −dt. Derivatives are
    those of the plain step at the states so rebuilt. Costs about one forward run more than `Direct`,
    and keeps nothing per step; of observers that accumulate, their state at each observation.

    For `VelocityVerlet`, `Leapfrog`, `Yoshida`, `Suzuki`, `KahanLi`, `BlanesMoan`, `PEFRL`, `Boris`,
    for `Euler` of a kick or drift of fields, and for `Lie`, `Strang`, `Composition` and `Subcycle` of
    these.

    **Arguments:**

    - `range_factor`: how many times further from the origin than at the start particles may fly in open
      space, and how many times larger than at the start fields may become.
    - `smallest_range`: how large fields may become in any case. For fields that start at rest and are driven
      later, whose size the start does not show; in their own unit, a thousand times what they reach.

    **Errors:** `NotReversible` names a part that damps, draws noise, or is no sequence of drifts and
    kicks, a force that depends on velocities, and a `Pairwise` with a neighbor list that is not
    `exact=True`; it refuses derivatives of second order. `ParameterError` for a range factor below 1.
    Fault `FIXED_POINT_RANGE` where a number leaves its range. Where the backward pass misses the start,
    derivatives are NaN: `reversibility_report` says at which steps.

    **Notes:** reverse mode only, and first order only. A force with a `custom_jvp` or `custom_vjp` of
    its own should hand it positions alone: given velocities, it counts as depending on them. On
    accelerators, deposits need `ParticleMesh(…, exact=True)`.

    **Reference:** Levesque & Verlet, J. Stat. Phys. 72, 519 (1993), for leapfrog on integers;
    Maclaurin, Duvenaud & Adams, ICML 2015, for derivatives while running backward.
    """

    range_factor: float = static(default=1024.0)
    smallest_range: float = static(default=0.0)

    def __check_init__(self):
        is_number = isinstance(self.range_factor, int | float) and math.isfinite(self.range_factor)
        if not is_number or self.range_factor < 1:
            raise ParameterError(
                f"range_factor is a finite factor of 1 or more; got {self.range_factor!r}"
            )
        if not (
            isinstance(self.smallest_range, int | float) and 0 <= self.smallest_range < math.inf
        ):
            raise ParameterError(
                f"smallest_range is the size of a field, at least 0; got {self.smallest_range!r}"
            )

    def repeat(self, body: LoopBody, carry: PyTree, length: int) -> tuple[PyTree, PyTree]:
        return Direct().repeat(body, carry, length)

    def estimate_memory(self, length: int, carry: float, inner: MemoryEstimate) -> MemoryEstimate:
        # Forward, the inverse step, and once more for the derivative.
        return MemoryEstimate(2 * carry, 4 * carry + inner.peak, 3.0)

    def advance(
        self, sim: Simulation, carry: Carry, blocks: int, block: LoopBody
    ) -> tuple[Carry, Frame]:
        del block
        carry = carry.replace(state=self.prepare_state(sim, carry.state))
        return advance_reversibly(sim, carry, blocks)

    def prepare_state(self, sim: Simulation, state: State) -> State:
        return to_fixed_point(sim, state, self.range_factor, self.smallest_range)

    def prepare_chunk(self, sim: Simulation, carry: Carry) -> tuple[Simulation, Carry]:
        carry = carry.replace(state=self.prepare_state(sim, carry.state))
        # `init` may have run operation by operation, and its first force may differ in a last bit from that of
        # a compiled program. Compute it again, as the backward pass will.
        sim, carry = fusion_barrier((sim, carry))
        return sim, carry.replace(aux=prepare_reproducibly(sim, carry)[1])

    def explain_error(self, error: TypeError) -> PhyskitError | None:
        return explain_forward_mode(error)
