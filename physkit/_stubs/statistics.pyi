# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fields import (
    PowerSpectrum as PowerSpectrum,
    power_spectrum as power_spectrum,
)
from physkit.observe import (
    Estimate as Estimate,
    HardSpherePressure as HardSpherePressure,
    Jackknife as Jackknife,
    SpinAverages as SpinAverages,
    block_average as block_average,
    dielectric_constant as dielectric_constant,
    diffusion_coefficient as diffusion_coefficient,
    green_kubo as green_kubo,
    hard_sphere_pressure as hard_sphere_pressure,
    jackknife as jackknife,
    shell_average as shell_average,
    spin_averages as spin_averages,
    wavevectors_within as wavevectors_within,
)
from physkit.storage import (
    Series as Series,
)
from physkit.ensemble import (
    bootstrap as bootstrap,
    ensemble_mean as ensemble_mean,
    ensemble_statistics as ensemble_statistics,
    passage_rate as passage_rate,
)
