# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.core import (
    AbstractComponent as AbstractComponent,
    Clock as Clock,
)
from physkit.particles import (
    ParticleIncrement as ParticleIncrement,
    Particles as Particles,
    RigidBodies as RigidBodies,
    RigidBodyIncrement as RigidBodyIncrement,
    random_orientations as random_orientations,
)
from physkit.fields import (
    AbstractFieldGroup as AbstractFieldGroup,
    AcousticField as AcousticField,
    CGridShallowWaterState as CGridShallowWaterState,
    ElasticField as ElasticField,
    ElectromagneticField as ElectromagneticField,
    Field as Field,
    FieldIncrement as FieldIncrement,
    FlowState as FlowState,
    Gas as Gas,
    HydrostaticState as HydrostaticState,
    MagnetizedGas as MagnetizedGas,
    ShallowWaterState as ShallowWaterState,
    Spectrum as Spectrum,
)
