"""Floor 6: everything that advances a state by one step."""

from ._boris import Boris as Boris
from ._brownian import Brownian as Brownian
from ._compositions import KahanLi as KahanLi, Suzuki as Suzuki, Yoshida as Yoshida
from ._courant import Courant as Courant, signal_rate as signal_rate
from ._diffrax import Diffrax as Diffrax
from ._etdrk import ETDRK2 as ETDRK2, ETDRK4 as ETDRK4
from ._exact import ExactLinear as ExactLinear, PotentialPhase as PotentialPhase
from ._exact_wave import ExactWave as ExactWave
from ._exactly import earliest as earliest
from ._exponential import AbstractExponential as AbstractExponential
from ._imex import (
    ARS222 as ARS222,
    ARS343 as ARS343,
    AbstractImplicitExplicit as AbstractImplicitExplicit,
    ImplicitExplicit as ImplicitExplicit,
)
from ._integrator import (
    AbstractIntegrator as AbstractIntegrator,
    AbstractOneStep as AbstractOneStep,
    AbstractUncarried as AbstractUncarried,
)
from ._langevin import BAOAB as BAOAB
from ._leapfrog import Leapfrog as Leapfrog
from ._momentum import RemoveMomentum as RemoveMomentum
from ._newton import Newton as Newton
from ._nose_hoover import (
    NoseHooverChain as NoseHooverChain,
    ThermostatChain as ThermostatChain,
)
from ._optimised import PEFRL as PEFRL, BlanesMoan as BlanesMoan
from ._runge_kutta import AbstractRungeKutta as AbstractRungeKutta
from ._schemes import (
    RK4 as RK4,
    RK38 as RK38,
    SSPRK2 as SSPRK2,
    SSPRK3 as SSPRK3,
    DormandPrince5 as DormandPrince5,
    Euler as Euler,
    Heun as Heun,
    Midpoint as Midpoint,
    Ralston as Ralston,
    RungeKutta as RungeKutta,
)
from ._split_step import SplitStep as SplitStep, ground_state as ground_state
from ._splitting import AbstractSplitting as AbstractSplitting, Lie as Lie, Strang as Strang
from ._subcycle import Subcycle as Subcycle
from ._symmetric import Composition as Composition
from ._tableau import Tableau as Tableau
from ._verlet import VelocityVerlet as VelocityVerlet
