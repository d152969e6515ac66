# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fields.equations import (
    AbstractAcousticSource as AbstractAcousticSource,
    AbstractElasticSource as AbstractElasticSource,
    AbstractStaggeredWave as AbstractStaggeredWave,
    ContinuousWave as ContinuousWave,
    ConvolutionalPML as ConvolutionalPML,
    ElasticWaves as ElasticWaves,
    ExtendedSource as ExtendedSource,
    KSpaceAcoustics as KSpaceAcoustics,
    MomentSource as MomentSource,
    PointForce as PointForce,
    PointSource as PointSource,
    PowerLawAbsorption as PowerLawAbsorption,
    WavePulse as WavePulse,
)
from physkit.fields import (
    AcousticField as AcousticField,
    ElasticField as ElasticField,
)
from physkit.geometry import (
    FreeSurface as FreeSurface,
)
from physkit.integrators import (
    StaggeredLeapfrog as StaggeredLeapfrog,
)
from physkit.observe import (
    Sensors as Sensors,
    WaveEnergy as WaveEnergy,
)
