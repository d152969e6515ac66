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
    ModeSource as ModeSource,
    PlaneWave as PlaneWave,
    PointDipole as PointDipole,
    WavePulse as WavePulse,
    WaveguideMode as WaveguideMode,
    waveguide_mode as waveguide_mode,
)
from physkit.observe import (
    ElectromagneticEnergy as ElectromagneticEnergy,
    FarField as FarField,
    FluxSpectrum as FluxSpectrum,
    RelativisticKineticEnergy as RelativisticKineticEnergy,
    mode_amplitudes as mode_amplitudes,
)
from physkit.fields import (
    ElectromagneticField as ElectromagneticField,
)
from physkit.geometry import (
    PerfectConductor as PerfectConductor,
    PerfectMagneticConductor as PerfectMagneticConductor,
)
from physkit.coupling import (
    deposit_current as deposit_current,
)
from physkit.integrators import (
    AbstractPusher as AbstractPusher,
    HigueraCary as HigueraCary,
    ParticleInCell as ParticleInCell,
    RelativisticBoris as RelativisticBoris,
    RelativisticMotion as RelativisticMotion,
    Vay as Vay,
    Yee as Yee,
)
