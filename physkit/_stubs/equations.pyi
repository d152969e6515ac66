# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fields import (
    AbstractConservationLaw as AbstractConservationLaw,
    AbstractEquation as AbstractEquation,
)
from physkit.fields.equations import (
    AbstractSecondOrder as AbstractSecondOrder,
    Advection as Advection,
    AdvectionByField as AdvectionByField,
    BodyForce as BodyForce,
    Brusselator as Brusselator,
    Burgers as Burgers,
    Closure as Closure,
    CompressibleEuler as CompressibleEuler,
    Diffusion as Diffusion,
    FisherKPP as FisherKPP,
    GravityWaves as GravityWaves,
    GrayScott as GrayScott,
    KolmogorovForcing as KolmogorovForcing,
    KortewegDeVries as KortewegDeVries,
    KuramotoSivashinsky as KuramotoSivashinsky,
    NavierStokes as NavierStokes,
    Schroedinger as Schroedinger,
    ShallowWater as ShallowWater,
    ShallowWaterFV as ShallowWaterFV,
    VariableDiffusion as VariableDiffusion,
    VorticityTransport as VorticityTransport,
    Wave as Wave,
)
