# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.particles.forces import (
    AbstractExternalForce as AbstractExternalForce,
    AbstractForce as AbstractForce,
    DirectGravity as DirectGravity,
    ExternalEnergy as ExternalEnergy,
    ExternalForce as ExternalForce,
    Forces as Forces,
    HarmonicAngles as HarmonicAngles,
    HarmonicBonds as HarmonicBonds,
    HarmonicTrap as HarmonicTrap,
    Modulated as Modulated,
    Pairwise as Pairwise,
    UniformAcceleration as UniformAcceleration,
    UniformField as UniformField,
)
from physkit.coupling import (
    Comoving as Comoving,
    ParticleMesh as ParticleMesh,
)
