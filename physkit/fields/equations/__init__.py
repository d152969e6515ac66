"""Partial differential equations, one a file."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._advection import Advection as Advection, AdvectionByField as AdvectionByField
    from ._burgers import Burgers as Burgers
    from ._closure import Closure as Closure
    from ._diffusion import (
        Diffusion as Diffusion,
        per_component as per_component,
        symbol_of_laplacian as symbol_of_laplacian,
    )
    from ._fourier_neural_operator import FourierNeuralOperator as FourierNeuralOperator
    from ._korteweg_de_vries import KortewegDeVries as KortewegDeVries
    from ._kuramoto_sivashinsky import KuramotoSivashinsky as KuramotoSivashinsky
    from ._noise import OrnsteinUhlenbeckNoise as OrnsteinUhlenbeckNoise, WhiteNoise as WhiteNoise
    from ._nonlinear_diffusion import (
        NonlinearDiffusion as NonlinearDiffusion,
        PowerLaw as PowerLaw,
    )
    from ._schroedinger import Schroedinger as Schroedinger, require_complex as require_complex
    from ._source_checks import require_inside as require_inside
    from ._staggered_wave import AbstractStaggeredWave as AbstractStaggeredWave
    from ._variable_diffusion import VariableDiffusion as VariableDiffusion
    from ._wave import AbstractSecondOrder as AbstractSecondOrder, Wave as Wave
    from .absorbing._convolutional_pml import ConvolutionalPML as ConvolutionalPML
    from .absorbing._sponge import Sponge as Sponge
    from .acoustic._acoustic_sources import (
        AbstractAcousticSource as AbstractAcousticSource,
        ExtendedSource as ExtendedSource,
        PointSource as PointSource,
    )
    from .acoustic._k_space_acoustics import (
        AcousticPlan as AcousticPlan,
        KSpaceAcoustics as KSpaceAcoustics,
    )
    from .acoustic._power_law_absorption import PowerLawAbsorption as PowerLawAbsorption
    from .elastic._elastic_sources import (
        AbstractElasticSource as AbstractElasticSource,
        MomentSource as MomentSource,
        PointForce as PointForce,
    )
    from .elastic._elastic_waves import ElasticPlan as ElasticPlan, ElasticWaves as ElasticWaves
    from .electromagnetism._maxwell import Maxwell as Maxwell, MaxwellPlan as MaxwellPlan
    from .electromagnetism._media import (
        AbstractDispersiveMedium as AbstractDispersiveMedium,
        AbstractMedium as AbstractMedium,
        Dielectric as Dielectric,
        Drude as Drude,
        Lorentz as Lorentz,
    )
    from .electromagnetism._mode_source import (
        ModeSource as ModeSource,
        WaveguideMode as WaveguideMode,
        waveguide_mode as waveguide_mode,
    )
    from .electromagnetism._plane_wave import PlaneWave as PlaneWave
    from .electromagnetism._sources import (
        AbstractSource as AbstractSource,
        CurrentSheet as CurrentSheet,
        PointDipole as PointDipole,
    )
    from .electromagnetism._waveforms import (
        ContinuousWave as ContinuousWave,
        WavePulse as WavePulse,
    )
    from .fluid._body_force import BodyForce as BodyForce
    from .fluid._buoyancy import Buoyancy as Buoyancy
    from .fluid._compressible_euler import CompressibleEuler as CompressibleEuler
    from .fluid._gravity_waves import GravityWaves as GravityWaves
    from .fluid._incompressible_flow import IncompressibleFlow as IncompressibleFlow
    from .fluid._kolmogorov_forcing import KolmogorovForcing as KolmogorovForcing
    from .fluid._navier_stokes import (
        NavierStokes as NavierStokes,
        project_solenoidal as project_solenoidal,
    )
    from .fluid._scalar_transport import ScalarTransport as ScalarTransport
    from .fluid._self_gravity import SelfGravity as SelfGravity
    from .fluid._shallow_water import ShallowWater as ShallowWater
    from .fluid._shallow_water_fv import ShallowWaterFV as ShallowWaterFV
    from .fluid._smagorinsky import Smagorinsky as Smagorinsky
    from .fluid._vorticity_transport import (
        VorticityTransport as VorticityTransport,
        velocity_from_vorticity as velocity_from_vorticity,
        vorticity as vorticity,
    )
    from .geophysical._balanced_flow import AbstractBalancedFlow as AbstractBalancedFlow
    from .geophysical._barotropic_vorticity import BarotropicVorticity as BarotropicVorticity
    from .geophysical._hydrostatic_flow import HydrostaticFlow as HydrostaticFlow
    from .geophysical._quasi_geostrophic import QuasiGeostrophic as QuasiGeostrophic
    from .geophysical._spherical_shallow_water import SphericalShallowWater as SphericalShallowWater
    from .geophysical._surface_quasi_geostrophic import (
        SurfaceQuasiGeostrophic as SurfaceQuasiGeostrophic,
    )
    from .magnetohydrodynamics._ideal_mhd import IdealMHD as IdealMHD
    from .pattern._allen_cahn import AllenCahn as AllenCahn
    from .pattern._cahn_hilliard import CahnHilliard as CahnHilliard
    from .pattern._complex_ginzburg_landau import ComplexGinzburgLandau as ComplexGinzburgLandau
    from .pattern._gradient_flow import AbstractGradientFlow as AbstractGradientFlow
    from .pattern._phase_field_crystal import PhaseFieldCrystal as PhaseFieldCrystal
    from .pattern._swift_hohenberg import SwiftHohenberg as SwiftHohenberg
    from .reaction._brusselator import Brusselator as Brusselator
    from .reaction._fisher_kpp import FisherKPP as FisherKPP
    from .reaction._fitzhugh_nagumo import FitzHughNagumo as FitzHughNagumo
    from .reaction._gray_scott import GrayScott as GrayScott
    from .reaction._keller_segel import KellerSegel as KellerSegel
    from .reaction._oregonator import Oregonator as Oregonator
    from .solid._solids import (
        AbstractGrip as AbstractGrip,
        AbstractSolid as AbstractSolid,
        Ball as Ball,
        SolidHold as SolidHold,
        as_solids as as_solids,
        ghosted_coordinates as ghosted_coordinates,
    )
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
