"""Every ready-made system in other units: the same physics, so that no absolute number is hidden in its parts.

A system is built in its own units, and every number with a dimension, by the table below, is multiplied by its
unit: parameters, the state, the time step. What comes out is divided by the same units.
"""

import dataclasses
import functools
import inspect
import typing
from typing import Any
from unittest import mock

import equinox as eqx
import jax
import numpy as np
import pytest

import physkit as pk
from physkit.core import Module, build_unchecked
from physkit.testing import Units, check_units

from .units_of_cases import CASES, MECHANICS, Case, Unit, amount, one, rate

# By class and field. Numbers that are 0 or infinite are so in all units, and need no row.
UNITS: dict[str, Unit] = {
    "Simulation.dt": lambda u: u.time,
    "Simulation.t0": lambda u: u.time,
    "Box.lengths": lambda u: u.length,
    "Particles.position": lambda u: u.length,
    "Particles.velocity": lambda u: u.speed,
    "Particles.mass": lambda u: u.mass,
    "Particles.charge": lambda u: u.charge,
    "Gas.density": lambda u: u.density,
    "Gas.momentum": lambda u: u.density * u.speed,
    "Gas.energy": lambda u: u.pressure,
    "Gas.gamma": one,
    "MagnetizedGas.density": lambda u: u.density,
    "MagnetizedGas.momentum_x": lambda u: u.density * u.speed,
    "MagnetizedGas.momentum_y": lambda u: u.density * u.speed,
    "MagnetizedGas.energy": lambda u: u.pressure,
    "MagnetizedGas.magnetic_x": lambda u: u.pressure**0.5,
    "MagnetizedGas.magnetic_y": lambda u: u.pressure**0.5,
    "MagnetizedGas.gamma": one,
    "ShallowWaterState.depth": lambda u: u.length,
    "ShallowWaterState.momentum": lambda u: u.length * u.speed,
    "CGridShallowWaterState.depth": lambda u: u.length,
    "CGridShallowWaterState.velocity_x": lambda u: u.speed,
    "CGridShallowWaterState.velocity_y": lambda u: u.speed,
    "FlowState.velocity_x": lambda u: u.speed,
    "FlowState.velocity_y": lambda u: u.speed,
    "FlowState.pressure": lambda u: u.speed**2,
    "ElectromagneticField.Ex": lambda u: u.mass * u.length / u.time**2 / u.charge,
    "ElectromagneticField.Ey": lambda u: u.mass * u.length / u.time**2 / u.charge,
    "ElectromagneticField.Ez": lambda u: u.mass * u.length / u.time**2 / u.charge,
    "ElectromagneticField.Hx": lambda u: u.charge / u.time / u.length,
    "ElectromagneticField.Hy": lambda u: u.charge / u.time / u.length,
    "LayerMemory.values": one,
    # Forces
    "CutAtEachPair.epsilon": lambda u: u.energy,
    "LennardJones.epsilon": lambda u: u.energy,
    "CutAtEachPair.sigma": lambda u: u.length,
    "LennardJones.sigma": lambda u: u.length,
    "Pairwise.cutoff": lambda u: u.length,
    "Pairwise.skin": lambda u: u.length,
    "DirectGravity.constant": lambda u: u.length**3 / u.mass / u.time**2,
    "Gravity.constant": lambda u: u.volume / u.mass / u.time**2,
    "Electrostatics.permittivity": lambda u: u.charge**2 * u.time**2 / u.mass / u.volume,
    "Comoving.hubble": rate,
    "RadialDistribution.r_max": lambda u: u.length,
    "Drag.friction": rate,
    "Drag.density": lambda u: u.density,
    "DoubleWell.barrier": lambda u: u.energy,
    # Electromagnetism
    "Maxwell.vacuum_permittivity": lambda u: u.charge**2 * u.time**2 / u.mass / u.length**3,
    "Maxwell.vacuum_permeability": lambda u: u.mass * u.length / u.charge**2,
    "RelativisticKineticEnergy.speed_of_light": lambda u: u.speed,
    "Dielectric.permittivity": one,
    "PlaneWave.direction": one,
    "PlaneWave.polarization": one,
    "PlaneWave.frequency": rate,
    "PlaneWave.speed": lambda u: u.speed,
    "PlaneWave.impedance": lambda u: u.mass * u.length**2 / u.time / u.charge**2,
    "WavePulse.frequency": rate,
    "WavePulse.width": lambda u: u.time,
    "WavePulse.center": lambda u: u.time,
    "WavePulse.amplitude": lambda u: u.mass * u.length / u.time**2 / u.charge,
    "ConvolutionalPML.speed": lambda u: u.speed,
    "ConvolutionalPML.strength": one,
    "ConvolutionalPML.order": one,
    "ConvolutionalPML.stretching": one,
    "FluxSpectrum.position": lambda u: u.length,
    "FluxSpectrum.frequencies": rate,
    # Sound and elastic waves
    "AcousticField.pressure": lambda u: u.pressure,
    "AcousticField.velocity_x": lambda u: u.speed,
    "AcousticField.velocity_y": lambda u: u.speed,
    "AcousticField.velocity_z": lambda u: u.speed,
    "KSpaceAcoustics.speed": lambda u: u.speed,
    "KSpaceAcoustics.density": lambda u: u.density,
    "PointSource.position": lambda u: u.length,
    "ElasticField.velocity_x": lambda u: u.speed,
    "ElasticField.velocity_y": lambda u: u.speed,
    "ElasticField.stress_xx": lambda u: u.pressure,
    "ElasticField.stress_yy": lambda u: u.pressure,
    "ElasticField.stress_xy": lambda u: u.pressure,
    "ElasticWaves.lame_lambda": lambda u: u.pressure,
    "ElasticWaves.lame_mu": lambda u: u.pressure,
    "ElasticWaves.density": lambda u: u.density,
    "PointForce.position": lambda u: u.length,
    "PointForce.force": lambda u: u.mass * u.length / u.time**2,
    "Sensors.positions": lambda u: u.length,
    "WavePulse.phase": one,
    # Integrators
    "BAOAB.temperature": lambda u: u.energy,
    "BAOAB.friction": rate,
    "Andersen.temperature": lambda u: u.energy,
    "Andersen.rate": rate,
    "StochasticCellRescaling.pressure": lambda u: u.energy / u.volume,
    "StochasticCellRescaling.relaxation_time": lambda u: u.time,
    "StochasticCellRescaling.compressibility": lambda u: u.volume / u.energy,
    "MonteCarloBarostat.pressure": lambda u: u.energy / u.volume,
    "MonteCarloBarostat.max_change": one,
    "MartynaTobiasKlein.temperature": lambda u: u.energy,
    "MartynaTobiasKlein.pressure": lambda u: u.energy / u.volume,
    "MartynaTobiasKlein.period": lambda u: u.time,
    "MartynaTobiasKlein.box_period": lambda u: u.time,
    "VelocityRescaling.temperature": lambda u: u.energy,
    "VelocityRescaling.relaxation_time": lambda u: u.time,
    "Brownian.temperature": lambda u: u.energy,
    "Brownian.friction": rate,
    "CFLSubsteps.cfl": one,
    "Reversible.range_factor": one,
    # Equations
    "CompressibleEuler.viscosity": lambda u: u.density * u.diffusivity,
    "CompressibleEuler.conductivity": lambda u: u.density * u.diffusivity,
    "SelfGravity.constant": lambda u: u.volume / u.mass / u.time**2,
    "IncompressibleFlow.viscosity": lambda u: u.diffusivity,
    "ScalarTransport.diffusivity": lambda u: u.diffusivity,
    "Buoyancy.acceleration": lambda u: u.acceleration / amount(u),
    "Buoyancy.reference": amount,
    "NoSlip.velocity": lambda u: u.speed,
    "Populations.fluid": one,
    "Populations.temperature": amount,
    "Populations.lattice_speed": lambda u: u.speed,
    "Populations.density": lambda u: u.density,
    "LatticeBoltzmann.viscosity": lambda u: u.diffusivity,
    "TwoRelaxationTimes.magic": one,
    "Heat.diffusivity": lambda u: u.diffusivity,
    "Heat.acceleration": lambda u: u.acceleration / amount(u),
    "Heat.reference": amount,
    "ShanChen.strength": one,
    "ShanChen.wall_density": one,
    "Ball.center": lambda u: u.length,
    "Ball.radius": lambda u: u.length,
    "Ball.speed": lambda u: u.speed,
    "Ball.spin": rate,
    "NusseltNumber.difference": amount,
    "Burgers.viscosity": lambda u: u.diffusivity,
    "Diffusion.diffusivity": lambda u: u.diffusivity,
    "NavierStokes.viscosity": lambda u: u.diffusivity,
    "VorticityTransport.viscosity": lambda u: u.diffusivity,
    "VorticityTransport.drag": rate,
    "KolmogorovForcing.amplitude": lambda u: u.acceleration,
    "CompressibleEuler.gamma": one,
    "IdealMHD.gamma": one,
    "AllenCahn.mobility": rate,
    "AllenCahn.gradient_energy": lambda u: u.length**2,
    "AllenCahn.barrier": one,
    "SwiftHohenberg.drive": lambda u: u.length**-4,
    "SwiftHohenberg.asymmetry": lambda u: u.length**-2,
    "SwiftHohenberg.wavenumber": lambda u: 1 / u.length,
    "SwiftHohenberg.mobility": lambda u: u.length**4 / u.time,
    "PhaseFieldCrystal.drive": lambda u: u.length**-4,
    "PhaseFieldCrystal.asymmetry": lambda u: u.length**-2,
    "PhaseFieldCrystal.wavenumber": lambda u: 1 / u.length,
    "PhaseFieldCrystal.mobility": lambda u: u.length**6 / u.time,
    "ComplexGinzburgLandau.growth": rate,
    "ComplexGinzburgLandau.diffusion": lambda u: u.diffusivity,
    "ComplexGinzburgLandau.dispersion": lambda u: u.diffusivity,
    "ComplexGinzburgLandau.saturation": lambda u: rate(u) / amount(u) ** 2,
    "ComplexGinzburgLandau.detuning": lambda u: rate(u) / amount(u) ** 2,
    "FitzHughNagumo.current": one,
    "FitzHughNagumo.slowness": one,
    "FitzHughNagumo.offset": one,
    "FitzHughNagumo.recovery": one,
    "KellerSegel.sensitivity": lambda u: u.diffusivity / amount(u),
    "KellerSegel.emission": rate,
    "KellerSegel.decay": rate,
    "PowerLaw.coefficient": lambda u: u.diffusivity / amount(u),
    "PowerLaw.exponent": one,
    "QuasiGeostrophic.viscosity": lambda u: u.length**8 / u.time,  # of ∇⁸
    "QuasiGeostrophic.depth": one,
    "QuasiGeostrophic.coupling": lambda u: u.length**-2,
    "QuasiGeostrophic.beta": lambda u: rate(u) / u.length,
    "QuasiGeostrophic.mean_flow": lambda u: u.speed,
    "QuasiGeostrophic.drag": rate,
    "SurfaceQuasiGeostrophic.viscosity": lambda u: u.length**4 / u.time,
    "FisherKPP.growth": rate,
    "FisherKPP.capacity": amount,
    "KortewegDeVries.nonlinearity": lambda u: u.speed / amount(u),
    "KortewegDeVries.dispersion": lambda u: u.length**3 / u.time,
    "KuramotoSivashinsky.instability": lambda u: u.diffusivity,
    "KuramotoSivashinsky.hyperdiffusion": lambda u: u.length**4 / u.time,
    "KuramotoSivashinsky.nonlinearity": lambda u: u.speed / amount(u),
    "LotkaVolterra.growth": rate,
    "LotkaVolterra.predation": lambda u: rate(u) / amount(u),
    "LotkaVolterra.death": rate,
    "LotkaVolterra.conversion": lambda u: rate(u) / amount(u),
    "Schroedinger.hbar": lambda u: u.energy * u.time,
    "Schroedinger.mass": lambda u: u.mass,
    "Schroedinger.potential": lambda u: u.energy,
    "SphericalShallowWater.gravity": lambda u: u.acceleration,
    "SphericalShallowWater.rotation": rate,
    "SphericalShallowWater.viscosity": lambda u: u.length**4 / u.time,
    "SphericalShallowWater.topography": lambda u: u.length,
    "BarotropicVorticity.rotation": rate,
    "BarotropicVorticity.viscosity": lambda u: u.diffusivity,
    "HydrostaticFlow.gravity": lambda u: u.acceleration,
    "HydrostaticFlow.coriolis": rate,
    "HydrostaticFlow.beta": lambda u: rate(u) / u.length,
    "HydrostaticFlow.origin": lambda u: u.length,
    "HydrostaticFlow.viscosity": lambda u: u.diffusivity,
    "HydrostaticFlow.vertical_viscosity": lambda u: u.diffusivity,
    "HydrostaticFlow.diffusivity": lambda u: u.diffusivity,
    "HydrostaticFlow.vertical_diffusivity": lambda u: u.diffusivity,
    "HydrostaticFlow.drag": lambda u: u.speed,
    "HydrostaticState.velocity_x": lambda u: u.speed,
    "HydrostaticState.velocity_y": lambda u: u.speed,
    "HydrostaticState.buoyancy": lambda u: u.acceleration,
    "HydrostaticState.surface": lambda u: u.length,
    "ShallowWater.gravity": lambda u: u.acceleration,
    "ShallowWater.beta": lambda u: rate(u) / u.length,
    "ShallowWater.drag": rate,
    "ShallowWater.wind_x": lambda u: u.speed**2,
    "ShallowWaterFV.gravity": lambda u: u.acceleration,
    "ShallowWaterFV.bed": lambda u: u.length,
    "ShallowWaterFV.dry": lambda u: u.length,
    "Wave.speed": lambda u: u.speed,
    # Of pure numbers
    "WCA.epsilon": lambda u: u.energy,
    "WCA.sigma": lambda u: u.length,
    "SoftSphere.epsilon": lambda u: u.energy,
    "SoftSphere.sigma": lambda u: u.length,
    "SoftSphere.exponent": one,
    "FENEBonds.stiffness": lambda u: u.energy / u.length**2,
    "FENEBonds.max_length": lambda u: u.length,
    "HarmonicBonds.stiffness": lambda u: u.energy / u.length**2,
    "HarmonicBonds.length": lambda u: u.length,
    "HarmonicAngles.stiffness": lambda u: u.energy,
    "HarmonicAngles.angle": one,
    "PeriodicTorsions.stiffness": lambda u: u.energy,
    "PeriodicTorsions.phase": one,
    "PeriodicTorsions.multiplicity": one,
    "DampedCoulomb.damping": lambda u: 1 / u.length,
    "DampedCoulomb.coulomb_constant": lambda u: u.energy * u.length / u.charge**2,
    "ParticleMeshEwald.tolerance": one,
    "RigidWater.oh": lambda u: u.length,
    "RigidWater.hh": lambda u: u.length,
    "Brusselator.a": one,
    "Brusselator.b": one,
    "GrayScott.feed": one,
    "GrayScott.kill": one,
    "Function.args": one,
}


# In the unit of what holds it: the field of a component, a wall of that field.
VALUES = {"", "Field.data", "Dirichlet.value"}


VALUES_PER_LENGTH = {"Neumann.slope"}


def in_units(x: Any, u: Units, unit: Unit | dict[str, Unit] | None, key: str = "") -> Any:
    """`x` with every number in the units `u`. `unit`: of numbers without a row of their own, by component."""
    if isinstance(x, Module):
        fields = {}
        for f in dataclasses.fields(x):
            key = f"{type(x).__name__}.{f.name}"
            if key == "Particles.fixed_point":
                continue
            inner = UNITS.get(key, unit)
            if key in VALUES_PER_LENGTH:
                inner = functools.partial(lambda u, of: of(u) / u.length, of=unit)
            fields[f.name] = in_units(getattr(x, f.name), u, inner, key)
        # The integers of Reversible() follow from the numbers, with a range in powers of two.
        return build_unchecked(
            type(x), fields | {"fixed_point": None} if isinstance(x, pk.Particles) else fields
        )
    if isinstance(x, dict):
        of = unit if isinstance(unit, dict) else dict.fromkeys(x, unit)
        return {k: in_units(v, u, of.get(k), key) for k, v in x.items()}
    if isinstance(x, tuple):
        return tuple(in_units(v, u, unit, key) for v in x)
    is_number = isinstance(x, float) or eqx.is_inexact_array(x)
    if not is_number or not np.any(np.isfinite(x) & (np.asarray(x) != 0)):
        return x
    has_unit = unit is not None and key in {*UNITS, *VALUES, *VALUES_PER_LENGTH}
    assert has_unit, f"the number {key} has no unit: give it a row in UNITS"
    return x * unit(u)


QUICK = (
    "double_well",
    "fisher_front",
    "burgers_wave",
    "plucked_string",
    "hare_and_lynx",
)


# Even powers of two, whose roots are powers of two: speeds of sound and of atoms. No bit may differ.
EVEN_POWERS = Units(2.0**-12, 2.0**-6, 2.0**-8, 2.0**-4, 2.0**4, name="even powers of two")


SI = Units(3e-10, 1e-12, 7e-26, 1.6e-19, 300.0, name="atoms in SI units")


def solve(u: Units, name: str, case: Case) -> Any:
    u = dataclasses.replace(u, **dict.fromkeys(case.fixed, 1.0))
    system = getattr(pk.systems, name)(**case.small)
    simulation, state = in_units(system, u, case.unit)
    done = pk.run(simulation, state, case.steps, key=0, progress=False)
    inverse = Units(
        *(1 / getattr(u, k) for k in (*MECHANICS, "charge", "temperature")), u.dimension
    )
    # Frames in the unit of their own largest number.
    frames = jax.tree.map(lambda x: x / (np.max(np.abs(x)) or 1), {**done.frames})
    return {"state": in_units(done.state, inverse, case.unit), "frames": frames}


def dimension(name: str, case: Case) -> int:
    _, state = getattr(pk.systems, name)(**case.small)
    return next((x.lengths.size for x in jax.tree.leaves(state, is_leaf=is_box) if is_box(x)), 3)


def is_box(x: Any) -> bool:
    return isinstance(x, pk.Box)


def check(name: str) -> None:
    case = CASES[name]
    with mock.patch.dict(UNITS, case.units):
        check_units(
            functools.partial(solve, name=name, case=case),
            systems=(EVEN_POWERS, SI),
            dimension=dimension(name, case),
        )


@pytest.mark.parametrize(
    "name",
    [
        n if n in QUICK else pytest.param(n, marks=pytest.mark.slow)
        for n, case in CASES.items()
        if not set(case.fixed) >= {*MECHANICS, "temperature"}
    ],
)
def test_same_physics_in_other_units(name):
    check(name)


def test_a_number_that_keeps_its_value_is_found(monkeypatch):
    """As an absolute number in the code would."""
    monkeypatch.setitem(UNITS, "DoubleWell.barrier", one)
    with pytest.raises(AssertionError, match="in even powers of two"):
        check("double_well")


def test_a_number_without_a_unit_is_found(monkeypatch):
    monkeypatch.delitem(UNITS, "DoubleWell.barrier")
    with pytest.raises(AssertionError, match=r"DoubleWell.barrier has no unit"):
        check("double_well")


def test_every_system_is_here():
    built = {
        name for name in dir(pk.systems)
        if inspect.isfunction(f := getattr(pk.systems, name))
        and typing.get_args(inspect.signature(f).return_annotation)[:1] == (pk.Simulation,)
    }  # fmt: skip
    assert built == set(CASES)
