# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.coupling import (
    AbstractMeshInteraction as AbstractMeshInteraction,
    Drag as Drag,
    Electrostatics as Electrostatics,
    Gravity as Gravity,
    ParticleMesh as ParticleMesh,
    PassiveTracers as PassiveTracers,
    deposit as deposit,
    interpolate as interpolate,
)
