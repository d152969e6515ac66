"""An X gate on a transmon, by two shaped quadratures."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import Module, einsum, param, static
from physkit.integrators import Magnus
from physkit.quantum import (
    DensityMatrix,
    Jump,
    Lindblad,
    LocalOperator,
    PiecewisePulse,
    anharmonicity,
    create,
    destroy,
)
from physkit.simulate import Simulation, simulate

from .._arguments import explain_system


class TransmonGate(Module):
    """What `transmon_gate` returns: a qubit with levels beyond, and a drive of `steps` steps in x and y.

    Times are in nanoseconds, angular frequencies in rad/ns.
    """

    alpha: Float[Array, ""] = param()
    decay_rate: Float[Array, ""] = param()
    duration: Float[Array, ""] = param()
    steps: int = static()
    levels: int = static()

    def guess(self) -> Float[Array, "2 steps"]:
        """A sin² pulse of area π in x, nothing in y: it rotates a qubit of two levels."""
        bump = np.sin(np.pi * (np.arange(self.steps) + 0.5) / self.steps) ** 2
        x = jnp.asarray(np.pi * self.steps * bump / bump.sum()) / self.duration
        return jnp.stack([x, jnp.zeros_like(x)])

    def evolution(self, values: Float[Array, "2 steps"]) -> Lindblad:
        """Lindblad's equation under the drive `values`, in the frame that turns with the qubit."""
        d = self.levels
        quadratures = (create(d) + destroy(d)) / 2, 1j * (create(d) - destroy(d)) / 2
        x, y = (
            LocalOperator(q, 0).driven(PiecewisePulse(v, self.duration))
            for q, v in zip(quadratures, values, strict=True)
        )
        drift = LocalOperator(anharmonicity(d), 0) * self.alpha
        return Lindblad(drift + x + y, Jump(LocalOperator(destroy(d), 0), self.decay_rate))

    def fidelity(self, values: Float[Array, "2 steps"]) -> Float[Array, ""]:
        """How near the drive comes to X: the mean over the six states ±x, ±y, ±z of the qubit.

        For the qubit that is the mean over all of its states; leakage and decay count.
        """
        root = math.sqrt(0.5)
        qubit = np.array(
            [[1, 0], [0, 1], [root, root], [root, -root], [root, 1j * root], [root, -1j * root]]
        )
        beyond = ((0, 0), (0, self.levels - 2))
        starts, ends = np.pad(qubit, beyond), np.pad(qubit[:, ::-1], beyond)
        simulation = Simulation(
            Magnus(self.evolution(values)), dt=self.duration / self.steps, guards=()
        )

        def final(psi: Array) -> Array:
            start = DensityMatrix.unnormalized(jnp.outer(psi, jnp.conj(psi)))
            return simulate(simulation, start, self.steps).state.elements

        real = jnp.result_type(self.alpha)
        dtype = np.result_type(real, np.complex64)
        rho = jax.vmap(final)(jnp.asarray(starts, dtype))
        targets = jnp.asarray(ends, dtype)
        return jnp.mean(einsum("ka,kab,kb->k", jnp.conj(targets), rho, targets).real)


@explain_system
def transmon_gate(
    anharmonic: ArrayLike = -2 * math.pi * 0.3,
    lifetime: ArrayLike = 1e6,
    duration: ArrayLike = 12.0,
    *,
    steps: int = 24,
    levels: int = 3,
) -> TransmonGate:
    """An X gate on a transmon by pulse shaping (GRAPE), with leakage to the third level and decay.

        H = ½ α a†a†aa + ½ Ωx(t) (a + a†) + ½ i Ωy(t) (a† − a),   Jump(a, 1/T₁)

    Fit `fidelity` by the drive, from `guess()`: above 0.9999, of which decay leaves 4e-6 out of reach.

    **Arguments:**

    - `anharmonic`: α, rad/ns: −0.3 GHz.
    - `lifetime`: T₁, ns: a millisecond.
    - `duration`: of the gate, ns, in `steps` equal steps.
    - `levels`: of the transmon that are kept.

    **Reference:** Khaneja et al., J. Magn. Reson. 172, 296 (2005); Motzoi et al., Phys. Rev. Lett. 103, 110501
    (2009).
    """
    rate = 1 / jnp.asarray(lifetime, float)
    return TransmonGate(
        jnp.asarray(anharmonic, float), rate, jnp.asarray(duration, float), steps, levels
    )
