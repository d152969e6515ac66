"""Floor 6: everything that advances a state by one step."""

from ._integrator import (
    AbstractIntegrator as AbstractIntegrator,
    AbstractOneStep as AbstractOneStep,
)
from ._verlet import VelocityVerlet as VelocityVerlet
