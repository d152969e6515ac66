"""Velocity Verlet: the work-horse of molecular dynamics."""

from typing import ClassVar

import equinox as eqx

from physkit.particles.forces import Forces

from .._splitting_coefficients import Stages
from ._kicks_and_drifts import AbstractKicksAndDrifts


class VelocityVerlet(AbstractKicksAndDrifts):
    """Velocity Verlet: kick, drift, kick. Order 2, symplectic, time-reversible.

        v½ = v + ½dt·F(x)/m,   x' = x + dt·v½,   v' = v½ + ½dt·F(x')/m

    One force evaluation a step: the force at the end of a step is the one its successor starts
    with. The energy error is bounded and of order dt²; stable for dt < 2/ω of the fastest vibration.

    **Arguments:**

    - `force`: a force or a sum of forces, on one or several particle components.

    **Good values:** 20 to 60 steps per period of the fastest vibration.

    **Notes:** forces may depend on positions and time. For forces that depend on velocities (drag,
    a magnetic field) use `RK4(EquationsOfMotion(force))` or a method made for them.

    **Reference:** Swope, Andersen, Berens & Wilson, J. Chem. Phys. 76, 637 (1982), eq. 14.
    """

    force: Forces = eqx.field(converter=Forces.of)
    # Two half kicks around one drift, in fractions of the step.
    stages: ClassVar[Stages] = ((0.5, 0.5), (1.0,))
