# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fields.lattice_boltzmann import (
    AbstractCollision as AbstractCollision,
    BGK as BGK,
    CentralMoments as CentralMoments,
    D2Q5 as D2Q5,
    D2Q9 as D2Q9,
    D3Q19 as D3Q19,
    D3Q27 as D3Q27,
    D3Q7 as D3Q7,
    Heat as Heat,
    Lattice as Lattice,
    LatticeBoltzmann as LatticeBoltzmann,
    Populations as Populations,
    ShanChen as ShanChen,
    TwoRelaxationTimes as TwoRelaxationTimes,
    time_step as time_step,
)
from physkit.fields.equations import (
    AbstractSolid as AbstractSolid,
    Ball as Ball,
)
from physkit.geometry import (
    FixedPressure as FixedPressure,
)
from physkit.integrators import (
    StreamAndCollide as StreamAndCollide,
)
from physkit.observe import (
    FluidDensity as FluidDensity,
    FluidPressure as FluidPressure,
    FluidTemperature as FluidTemperature,
    FluidVelocity as FluidVelocity,
    SolidForce as SolidForce,
)
