"""Systems of units: what a meter, a kelvin or a bar is in the units of a simulation."""

import dataclasses
import math

import numpy as np

from .._errors import ParameterError

# CODATA 2022, in SI units.
_BOLTZMANN = 1.380649e-23
_AVOGADRO = 6.02214076e23
_CHARGE = 1.602176634e-19
_DALTON = 1.66053906892e-27
_BOHR = 5.29177210544e-11
_HARTREE = 4.3597447222060e-18
_ELECTRON = 9.1093837139e-31
_PERMITTIVITY = 8.8541878188e-12
_HBAR = 1.054571817e-34


@dataclasses.dataclass(frozen=True)
class UnitSystem:
    """A coherent system of units, given by its units of length, mass, energy and charge in SI units.

        unit of time = length √(mass / energy)

    In such a system F = m a holds without factors, so that every force and integrator works in it as it stands.
    Each property is a quantity in units of the system: multiply to put numbers in, divide to read them off,

        dt = 2 * metal.femtosecond;  temperature = 300 * metal.kelvin;  pressure / metal.bar

    Temperatures are energies, k_B T, throughout physkit.

    **Arguments:**

    - `name`: shown in labels.
    - `length`, `mass`, `energy`, `charge`: the units, in m, kg, J and C.

    **Errors:** `ParameterError` for a unit that is not positive.

    **Source:** CODATA 2022.
    """

    name: str
    length: float
    mass: float
    energy: float
    charge: float

    def __post_init__(self):
        for field in ("length", "mass", "energy", "charge"):
            value = getattr(self, field)
            if not (np.isfinite(value) and value > 0):
                raise ParameterError(f"the unit of {field} must be positive; got {value!r}")

    @property
    def time(self) -> float:
        """The unit of time, in seconds."""
        return self.length * math.sqrt(self.mass / self.energy)

    # --- lengths and times -------------------------------------------------------------------------

    @property
    def meter(self) -> float:
        """1 m."""
        return 1 / self.length

    @property
    def nanometer(self) -> float:
        """1 nm."""
        return 1e-9 / self.length

    @property
    def angstrom(self) -> float:
        """1 Å."""
        return 1e-10 / self.length

    @property
    def bohr(self) -> float:
        """1 Bohr radius."""
        return _BOHR / self.length

    @property
    def second(self) -> float:
        """1 s."""
        return 1 / self.time

    @property
    def nanosecond(self) -> float:
        """1 ns."""
        return 1e-9 / self.time

    @property
    def picosecond(self) -> float:
        """1 ps."""
        return 1e-12 / self.time

    @property
    def femtosecond(self) -> float:
        """1 fs."""
        return 1e-15 / self.time

    # --- masses and charges ------------------------------------------------------------------------

    @property
    def kilogram(self) -> float:
        """1 kg."""
        return 1 / self.mass

    @property
    def dalton(self) -> float:
        """1 Da, the atomic mass unit; 1 g/mol."""
        return _DALTON / self.mass

    @property
    def coulomb(self) -> float:
        """1 C."""
        return 1 / self.charge

    @property
    def elementary_charge(self) -> float:
        """e."""
        return _CHARGE / self.charge

    # --- energies ----------------------------------------------------------------------------------

    @property
    def joule(self) -> float:
        """1 J."""
        return 1 / self.energy

    @property
    def electronvolt(self) -> float:
        """1 eV."""
        return _CHARGE / self.energy

    @property
    def hartree(self) -> float:
        """1 Hartree."""
        return _HARTREE / self.energy

    @property
    def kilojoule_per_mole(self) -> float:
        """1 kJ/mol."""
        return 1e3 / _AVOGADRO / self.energy

    @property
    def kilocalorie_per_mole(self) -> float:
        """1 kcal/mol, of 4184 J."""
        return 4184 / _AVOGADRO / self.energy

    @property
    def kelvin(self) -> float:
        """k_B · 1 K: the energy that belongs to a kelvin."""
        return _BOLTZMANN / self.energy

    # --- what is derived from them -----------------------------------------------------------------

    @property
    def pascal(self) -> float:
        """1 Pa."""
        return self.length**3 / self.energy

    @property
    def bar(self) -> float:
        """1 bar."""
        return 1e5 * self.pascal

    @property
    def atmosphere(self) -> float:
        """1 atm."""
        return 101325 * self.pascal

    @property
    def gram_per_cubic_centimeter(self) -> float:
        """1 g/cm³."""
        return 1e3 * self.length**3 / self.mass

    @property
    def meter_per_second(self) -> float:
        """1 m/s."""
        return self.time / self.length

    @property
    def coulomb_constant(self) -> float:
        """1/(4π ε₀), energy · length / charge²: `Coulomb(constant=…)`."""
        return self.charge**2 / (4 * math.pi * _PERMITTIVITY * self.length * self.energy)

    @property
    def hbar(self) -> float:
        """ħ, energy · time."""
        return _HBAR / (self.energy * self.time)


SI = UnitSystem("SI", 1.0, 1.0, 1.0, 1.0)
# Å, Da, eV: those of ASE and, but for the unit of time (here 10.18 fs), `units metal` of LAMMPS.
metal = UnitSystem("metal", 1e-10, _DALTON, _CHARGE, _CHARGE)
# Å, Da, kcal/mol, 48.89 fs: `units real` of LAMMPS but for the unit of time, and AKMA of CHARMM.
real = UnitSystem("real", 1e-10, _DALTON, 4184 / _AVOGADRO, _CHARGE)
# nm, Da, kJ/mol, ps: those of OpenMM and GROMACS.
molecular = UnitSystem("molecular", 1e-9, _DALTON, 1e3 / _AVOGADRO, _CHARGE)
# Bohr radius, electron mass, Hartree, 24.19 as.
atomic = UnitSystem("atomic", _BOHR, _ELECTRON, _HARTREE, _CHARGE)


def lennard_jones_units(
    epsilon: float, sigma: float, mass: float, units: UnitSystem = SI
) -> UnitSystem:
    """Reduced units of a substance: ε, σ and m given in `units`; charges in √(4π ε₀ σ ε).

        T* = k_B T/ε,   ρ* = ρσ³,   t* = t √(ε/m)/σ

    `lennard_jones_units(0.0103, 3.405, 39.948, metal)` is argon.
    """
    length, energy = sigma * units.length, epsilon * units.energy
    charge = math.sqrt(4 * math.pi * _PERMITTIVITY * length * energy)
    return UnitSystem("Lennard-Jones", length, mass * units.mass, energy, charge)
