# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fields.equations import (
    AbstractDispersiveMedium as AbstractDispersiveMedium,
    AbstractMedium as AbstractMedium,
    AbstractSource as AbstractSource,
    ContinuousWave as ContinuousWave,
    ConvolutionalPML as ConvolutionalPML,
    CurrentSheet as CurrentSheet,
    Dielectric as Dielectric,
    Drude as Drude,
    Lorentz as Lorentz,
    Maxwell as Maxwell,
    PlaneWave as PlaneWave,
    PointDipole as PointDipole,
    WavePulse as WavePulse,
)
from physkit.observe import (
    ElectromagneticEnergy as ElectromagneticEnergy,
    FluxSpectrum as FluxSpectrum,
)
from physkit.fields import (
    ElectromagneticField as ElectromagneticField,
)
from physkit.geometry import (
    PerfectConductor as PerfectConductor,
    PerfectMagneticConductor as PerfectMagneticConductor,
)
from physkit.integrators import (
    Yee as Yee,
)
