"""Systems of units against published values and one another."""

import numpy as np
import pytest

from physkit import units
from physkit.core import ParameterError


def test_published_values():
    # LAMMPS, `units` and `update.cpp`; GROMACS manual, table 2.1; CODATA.
    np.testing.assert_allclose(units.metal.time, 10.1805e-15, rtol=1e-6)
    np.testing.assert_allclose(units.real.time, 48.88821e-15, rtol=1e-6)
    np.testing.assert_allclose(units.molecular.time, 1e-12, rtol=1e-8)
    np.testing.assert_allclose(units.atomic.time, 2.4188843265864e-17, rtol=1e-9)
    np.testing.assert_allclose(units.metal.kelvin, 8.617333262e-5, rtol=1e-9)
    np.testing.assert_allclose(units.real.kelvin, 0.0019872067, rtol=2e-6)
    np.testing.assert_allclose(units.metal.coulomb_constant, 14.399645, rtol=1e-6)
    np.testing.assert_allclose(units.real.coulomb_constant, 332.06371, rtol=1e-6)
    np.testing.assert_allclose(units.molecular.coulomb_constant, 138.935458, rtol=1e-8)
    np.testing.assert_allclose(units.real.atmosphere, 1 / 68568.415, rtol=1e-6)
    np.testing.assert_allclose(units.metal.bar, 1 / 1.6021765e6, rtol=1e-6)
    np.testing.assert_allclose(units.molecular.bar, 1 / 16.6054, rtol=1e-5)
    assert units.atomic.hbar == pytest.approx(1, rel=1e-9)
    assert units.atomic.coulomb_constant == pytest.approx(1, rel=1e-9)
    assert units.atomic.electronvolt == pytest.approx(1 / 27.211386246, rel=1e-9)


@pytest.mark.parametrize("name", ["SI", "metal", "real", "molecular", "atomic"])
def test_a_system_agrees_with_itself(name):
    unit = getattr(units, name)
    joule = unit.kilogram * (unit.meter / unit.second) ** 2
    np.testing.assert_allclose(joule, unit.joule, rtol=1e-12)
    np.testing.assert_allclose(unit.pascal, unit.joule / unit.meter**3, rtol=1e-12)
    np.testing.assert_allclose(unit.meter_per_second, unit.meter / unit.second, rtol=1e-12)
    np.testing.assert_allclose(unit.nanometer, 10 * unit.angstrom, rtol=1e-12)
    np.testing.assert_allclose(unit.picosecond, 1e3 * unit.femtosecond, rtol=1e-12)
    np.testing.assert_allclose(unit.kilocalorie_per_mole, 4.184 * unit.kilojoule_per_mole)
    np.testing.assert_allclose(unit.hartree, 27.211386246 * unit.electronvolt, rtol=1e-9)
    water = unit.gram_per_cubic_centimeter * (1e7 * unit.nanometer) ** 3  # of a cubic centimeter
    np.testing.assert_allclose(water, 1e-3 * unit.kilogram, rtol=1e-12)
    # Two elementary charges a Bohr radius apart have one Hartree.
    energy = unit.coulomb_constant * unit.elementary_charge**2 / unit.bohr
    np.testing.assert_allclose(energy, unit.hartree, rtol=1e-9)


def test_reduced_units_of_argon():
    reduced = units.lennard_jones_units(119.8 * units.metal.kelvin, 3.405, 39.948, units.metal)
    np.testing.assert_allclose(reduced.time, 2.156e-12, rtol=1e-3)
    assert 119.8 * reduced.kelvin == pytest.approx(1)
    assert reduced.coulomb_constant == pytest.approx(1)
    assert 1.374 * reduced.gram_per_cubic_centimeter == pytest.approx(0.8177, rel=1e-3)


def test_units_are_positive():
    with pytest.raises(ParameterError, match="the unit of mass must be positive; got 0"):
        units.UnitSystem("none", 1.0, 0.0, 1.0, 1.0)
