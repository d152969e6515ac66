"""Everything that advances a state by one step.

Folders, each importing only from those before it: `particle` (particles under forces), `runge_kutta` (rates of
any state), `splitting` (integrators made of integrators), `quantum` (qubits and open systems), `spectral`
(equations with a symbol), `staggered` (leapfrogs of light and sound, particle-in-cell), `lattice_boltzmann`
(populations that move and collide); `baths` (heat baths and barostats around an integrator), `monte_carlo`
(moves drawn at random that keep a Boltzmann distribution), `sampling` (biases that grow, replicas that swap,
minima).
"""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._composition_checks import (
        check_composition as check_composition,
        reads_velocities as reads_velocities,
        warn_before_sharding as warn_before_sharding,
    )
    from ._integrator import (
        AbstractIntegrator as AbstractIntegrator,
        AbstractOneStep as AbstractOneStep,
        AbstractStateless as AbstractStateless,
    )
    from ._reproducible import select_clock as select_clock
    from .baths._andersen import Andersen as Andersen
    from .baths._box_motion import BoxMotion as BoxMotion
    from .baths._cell_rescaling import StochasticCellRescaling as StochasticCellRescaling
    from .baths._martyna_tobias_klein import MartynaTobiasKlein as MartynaTobiasKlein
    from .baths._monte_carlo_barostat import MonteCarloBarostat as MonteCarloBarostat
    from .baths._velocity_rescaling import VelocityRescaling as VelocityRescaling
    from .lattice_boltzmann._stream_and_collide import StreamAndCollide as StreamAndCollide
    from .monte_carlo._gillespie import (
        AbstractJumpProcess as AbstractJumpProcess,
        Gillespie as Gillespie,
    )
    from .monte_carlo._hard_spheres import HardSphereMonteCarlo as HardSphereMonteCarlo
    from .monte_carlo._hybrid_monte_carlo import HybridMonteCarlo as HybridMonteCarlo
    from .monte_carlo._spin_updates import (
        AbstractSpinUpdate as AbstractSpinUpdate,
        SpinHeatBath as SpinHeatBath,
        SpinMetropolis as SpinMetropolis,
    )
    from .monte_carlo._swendsen_wang import SwendsenWang as SwendsenWang
    from .monte_carlo._tau_leaping import TauLeaping as TauLeaping
    from .particle._boris import Boris as Boris
    from .particle._brownian import Brownian as Brownian
    from .particle._equations_of_motion import EquationsOfMotion as EquationsOfMotion
    from .particle._langevin import BAOAB as BAOAB
    from .particle._leapfrog import Leapfrog as Leapfrog
    from .particle._nose_hoover import (
        NoseHooverChain as NoseHooverChain,
        ThermostatChain as ThermostatChain,
    )
    from .particle._optimized_splittings import PEFRL as PEFRL, BlanesMoan as BlanesMoan
    from .particle._remove_momentum import RemoveMomentum as RemoveMomentum
    from .particle._velocity_verlet import VelocityVerlet as VelocityVerlet
    from .particle._verlet_compositions import (
        KahanLi as KahanLi,
        Suzuki as Suzuki,
        Yoshida as Yoshida,
    )
    from .quantum._krylov import Krylov as Krylov
    from .quantum._magnus import Magnus as Magnus
    from .quantum._quantum_jumps import QuantumJumps as QuantumJumps
    from .quantum._repeated_circuit import RepeatedCircuit as RepeatedCircuit
    from .quantum._trotter import Trotter as Trotter
    from .runge_kutta._diffrax import Diffrax as Diffrax
    from .runge_kutta._explicit import AbstractRungeKutta as AbstractRungeKutta
    from .runge_kutta._named_methods import (
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
    from .runge_kutta._stochastic import (
        EulerMaruyama as EulerMaruyama,
        StochasticHeun as StochasticHeun,
    )
    from .runge_kutta._tableau import Tableau as Tableau
    from .sampling._basin_hopping import BasinHopping as BasinHopping
    from .sampling._metadynamics import Metadynamics as Metadynamics
    from .sampling._replica_exchange import ReplicaExchange as ReplicaExchange
    from .sampling._replicas import Replicas as Replicas
    from .spectral._etdrk import ETDRK2 as ETDRK2, ETDRK4 as ETDRK4
    from .spectral._exact_linear import ExactLinear as ExactLinear
    from .spectral._exact_wave import ExactWave as ExactWave
    from .spectral._exponential import AbstractExponential as AbstractExponential
    from .spectral._ground_state import ground_state as ground_state
    from .spectral._implicit_explicit import (
        ARS222 as ARS222,
        ARS343 as ARS343,
        AbstractImplicitExplicit as AbstractImplicitExplicit,
        BackwardEuler as BackwardEuler,
        CrankNicolson as CrankNicolson,
        ImplicitExplicit as ImplicitExplicit,
    )
    from .spectral._potential_propagator import PotentialPropagator as PotentialPropagator
    from .spectral._split_step import SplitStep as SplitStep
    from .splitting._cfl_substeps import (
        CFLSubsteps as CFLSubsteps,
        total_signal_rate as total_signal_rate,
    )
    from .splitting._events import Event as Event, Events as Events
    from .splitting._lie_strang import (
        AbstractSplitting as AbstractSplitting,
        Lie as Lie,
        Strang as Strang,
    )
    from .splitting._subcycle import Subcycle as Subcycle
    from .splitting._symmetric_composition import Composition as Composition
    from .staggered._particle_in_cell import ParticleInCell as ParticleInCell
    from .staggered._pushers import (
        AbstractPusher as AbstractPusher,
        HigueraCary as HigueraCary,
        RelativisticBoris as RelativisticBoris,
        Vay as Vay,
    )
    from .staggered._relativistic_motion import RelativisticMotion as RelativisticMotion
    from .staggered._staggered_leapfrog import StaggeredLeapfrog as StaggeredLeapfrog
    from .staggered._yee import Yee as Yee
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
