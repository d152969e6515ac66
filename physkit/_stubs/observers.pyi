# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.observe import (
    AbstractObserver as AbstractObserver,
    Average as Average,
    BlockAverage as BlockAverage,
    Every as Every,
    FirstPassage as FirstPassage,
    FluxSpectrum as FluxSpectrum,
    MeanSquareDisplacement as MeanSquareDisplacement,
    RadialDistribution as RadialDistribution,
    Snapshot as Snapshot,
    StructureFactor as StructureFactor,
    VelocityAutocorrelation as VelocityAutocorrelation,
)
from physkit.simulate import (
    RunProgress as RunProgress,
)
