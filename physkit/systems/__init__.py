"""Floor 12: ready-made `(simulation, state)` pairs, one physics a file, each with its published reference."""

from ._argon import (
    ARGON_DIFFUSION as ARGON_DIFFUSION,
    ARGON_FIRST_PEAK as ARGON_FIRST_PEAK,
    K_B as K_B,
    SIGMA as ARGON_SIGMA,
    ArgonResults as ArgonResults,
    argon_results as argon_results,
    liquid_argon as liquid_argon,
    melt as melt,
)
from ._brusselator import brusselator as brusselator
from ._burgers import burgers_wave as burgers_wave, cole_hopf_wave as cole_hopf_wave
from ._fisher import fisher_front as fisher_front
from ._gray_scott import gray_scott as gray_scott
from ._kuramoto_sivashinsky import kuramoto_sivashinsky as kuramoto_sivashinsky
from ._lennard_jones import lennard_jones_melt as lennard_jones_melt
from ._lorenz import lorenz as lorenz
from ._orbits import (
    FIGURE_EIGHT_PERIOD as FIGURE_EIGHT_PERIOD,
    figure_eight as figure_eight,
    kepler as kepler,
)
from ._quantum import (
    coherent_state as coherent_state,
    transmission as transmission,
    tunnelling as tunnelling,
    wave_packet as wave_packet,
)
from ._solar import (
    AU_IN_KM as AU_IN_KM,
    PLANETS as PLANETS,
    SOLAR_RADIUS as SOLAR_RADIUS,
    SUN_TO_PLANET as SUN_TO_PLANET,
    SolarTracks as SolarTracks,
    giant_planets as giant_planets,
    solar_tracks as solar_tracks,
)
from ._solitons import kdv_solitons as kdv_solitons, soliton as soliton
from ._string import plucked_string as plucked_string
from ._taylor_green import (
    TAYLOR_GREEN_PEAK as TAYLOR_GREEN_PEAK,
    taylor_green_2d as taylor_green_2d,
    taylor_green_3d as taylor_green_3d,
    taylor_green_vorticity as taylor_green_vorticity,
)
from ._turbulence import (
    decaying_turbulence as decaying_turbulence,
    kolmogorov_flow as kolmogorov_flow,
    random_vorticity as random_vorticity,
)
from ._weigh_planets import Weighing as Weighing, weigh_planets as weigh_planets
