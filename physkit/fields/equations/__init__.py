"""Partial differential equations, one a file."""

from ._advection import Advection as Advection, AdvectionBy as AdvectionBy
from ._body_force import BodyForce as BodyForce
from ._brusselator import Brusselator as Brusselator
from ._burgers import Burgers as Burgers
from ._closure import Closure as Closure
from ._compressible_euler import CompressibleEuler as CompressibleEuler
from ._diffusion import (
    Diffusion as Diffusion,
    per_component as per_component,
    symbol_of_laplacian as symbol_of_laplacian,
)
from ._fisher_kpp import FisherKPP as FisherKPP
from ._flooding import Flooding as Flooding
from ._gravity_waves import GravityWaves as GravityWaves
from ._gray_scott import GrayScott as GrayScott
from ._kolmogorov import KolmogorovForcing as KolmogorovForcing
from ._korteweg_de_vries import KortewegDeVries as KortewegDeVries
from ._kuramoto_sivashinsky import KuramotoSivashinsky as KuramotoSivashinsky
from ._navier_stokes import NavierStokes as NavierStokes, solenoidal as solenoidal
from ._schroedinger import Schroedinger as Schroedinger, need_complex as need_complex
from ._shallow_water import ShallowWater as ShallowWater
from ._vorticity import (
    VorticityTransport as VorticityTransport,
    velocity_from_vorticity as velocity_from_vorticity,
    vorticity as vorticity,
)
from ._wave import AbstractSecondOrder as AbstractSecondOrder, Wave as Wave
