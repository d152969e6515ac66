"""Floor 3: particles, their neighbours and their forces."""

from ._particles import Motion as Motion, Particles as Particles
