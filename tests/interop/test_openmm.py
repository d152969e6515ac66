"""Force fields of OpenMM, against its Reference platform."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit import find, interop, units
from physkit.core import Clock, ParameterError, StepCount
from physkit.geometry import Free
from physkit.integrators import VelocityVerlet
from physkit.particles import RigidWater, constrain
from physkit.particles.forces import Forces, VirtualSites
from physkit.simulate import Simulation, init
from physkit.systems import alanine_dipeptide_pdb

openmm = pytest.importorskip("openmm")
app = pytest.importorskip("openmm.app")

PEPTIDE = alanine_dipeptide_pdb()
# OpenMM's force → the terms that it becomes.
TERMS = {
    "HarmonicBondForce": ("bonds",),
    "HarmonicAngleForce": ("angles",),
    "PeriodicTorsionForce": ("torsions",),
    "CMAPTorsionForce": ("torsion_maps",),
    "NonbondedForce": ("lennard_jones", "coulomb", "lennard_jones_14", "coulomb_14", "exceptions"),
}


def reference(system, positions):
    """Energy by force, and the sum of all forces, in kJ/mol and nm."""
    for k, force in enumerate(system.getForces()):
        force.setForceGroup(k)
    platform = openmm.Platform.getPlatformByName("Reference")
    context = openmm.Context(system, openmm.VerletIntegrator(1e-3), platform)
    context.setPositions(positions)
    context.computeVirtualSites()
    energies = {}
    for k, force in enumerate(system.getForces()):
        state = context.getState(getEnergy=True, groups={k})
        energies[type(force).__name__] = state.getPotentialEnergy()._value
    forces = context.getState(getForces=True).getForces(asNumpy=True)._value
    return energies, np.asarray(forces)


@jax.jit
def evaluate(particles, force):
    """Energy by term, and the sum of all forces."""
    zero = jnp.zeros(())
    clock = Clock.at(StepCount.of(0), zero, zero)
    caches = force.init(particles)
    total, caches = force(clock, particles, caches)
    terms = zip(force.term_names, force.terms, caches, strict=True)
    return {n: term.energy(clock, particles, cache) for n, term, cache in terms}, total[None]


def on_particles(system, forces):
    """Forces of OpenMM on its particles, those on sites spread to their parents by OpenMM itself."""
    return forces[[k for k in range(len(forces)) if not system.isVirtualSite(k)]]


def require_same(
    system, topology, positions, unit=units.molecular, energy=1e-5, force=1e-4, **options
):
    particles, forces = interop.from_openmm(system, topology, positions, units=unit, **options)
    # What is chosen from the numbers of the box, a mesh, is chosen outside of a trace.
    planned = tuple(term.for_start(particles, 0) for term in forces.terms)
    energies, total = evaluate(particles, Forces(planned, forces.term_names))
    expected, expected_forces = reference(system, positions)
    to_kj = unit.kilojoule_per_mole
    for name, value in expected.items():
        if name != "CMMotionRemover":
            found = sum(float(energies.get(term, 0)) for term in TERMS[name]) / to_kj
            np.testing.assert_allclose(found, value, rtol=energy, err_msg=name)
    found_forces = np.asarray(total) / to_kj * unit.nanometer
    expected_forces = on_particles(system, expected_forces)
    error = np.sqrt(np.mean((found_forces - expected_forces) ** 2))
    assert error < force * np.sqrt(np.mean(expected_forces**2))
    return particles, forces


def peptide():
    pdb = app.PDBFile(str(PEPTIDE))
    return pdb.topology, pdb.positions


@pytest.mark.slow
def test_alanine_dipeptide_in_vacuum():
    """Amber 19, with a torsion map: every kind of energy, and all forces, in other units."""
    topology, positions = peptide()
    with jax.enable_x64(True):
        system = app.ForceField("amber19-all.xml").createSystem(topology)
        particles, force = require_same(
            system, topology, positions, units.real, energy=1e-8, force=1e-7
        )
        assert isinstance(particles.space, Free)
        assert particles.species_names[:2] == ("C", "H")
        # Scaled exceptions follow the particles' charges and wells.
        assert set(force.term_names) == {
            "bonds", "angles", "torsions", "torsion_maps", "lennard_jones", "coulomb",
            "lennard_jones_14", "coulomb_14",
        }  # fmt: skip
        assert find(force, "coulomb_14").scale[0] == pytest.approx(1 / 1.2)
        atoms = interop.to_ase(particles, units.real)
        assert atoms.get_chemical_formula() == "C6H12N2O2"


@pytest.mark.slow
def test_exceptions_with_numbers_of_their_own():
    """Ryckaert–Bellemans torsions, and exceptions that are no multiples of what the particles have."""
    with jax.enable_x64(True):
        system = openmm.System()
        nonbonded = openmm.NonbondedForce()
        nonbonded.setNonbondedMethod(openmm.NonbondedForce.NoCutoff)
        for k in range(4):
            system.addParticle(15.0)
            nonbonded.addParticle((-1) ** k * 0.2, 0.35, 0.5)
        for i, j in ((0, 1), (1, 2), (2, 3), (0, 2), (1, 3)):
            nonbonded.addException(i, j, 0, 1, 0)
        nonbonded.addException(0, 3, 0.011, 0.3, 0.27)
        torsions = openmm.RBTorsionForce()
        torsions.addTorsion(0, 1, 2, 3, 9.28, 12.16, -13.12, -3.06, 26.24, -31.5)
        system.addForce(nonbonded)
        system.addForce(torsions)
        positions = np.array([[0.1, 0.1, 0], [0, 0, 0], [0.15, 0, 0], [0.2, 0.1, 0.08]])
        particles, force = interop.from_openmm(system, positions=positions)
        energies, total = evaluate(particles, force)
        expected, expected_forces = reference(system, positions)
        assert set(energies) == {
            "lennard_jones",
            "coulomb",
            "exceptions",
            "ryckaert_bellemans_torsions",
        }
        assert sum(energies.values()) == pytest.approx(sum(expected.values()), rel=1e-8)
        np.testing.assert_allclose(total, expected_forces, rtol=1e-6, atol=1e-6)


def test_what_has_no_counterpart_is_named():
    topology, positions = peptide()
    field = app.ForceField("amber14-all.xml", "implicit/gbn2.xml")
    system = field.createSystem(topology)
    with pytest.raises(ParameterError, match="the system has a CustomGBForce: no force here does"):
        interop.from_openmm(system, topology, positions)
    system = openmm.System()
    for _ in range(3):
        system.addParticle(1.0)
    with pytest.raises(ParameterError, match=r"takes an openmm.System, .* got a function"):
        interop.from_openmm(peptide, positions=positions)
    with pytest.raises(ParameterError, match=r"needs positions"):
        interop.from_openmm(system)
    with pytest.raises(ParameterError, match=r"3 particles, the positions have shape \(2, 3\)"):
        interop.from_openmm(system, positions=np.zeros((2, 3)))
    with pytest.raises(ParameterError, match="3 particles, the topology 22 atoms"):
        interop.from_openmm(system, topology, np.zeros((3, 3)))
    system.addForce(openmm.MonteCarloBarostat(1.0, 300.0))
    with pytest.raises(ParameterError, match="MonteCarloBarostat: a barostat is an integrator"):
        interop.from_openmm(system, positions=np.zeros((3, 3)))
    nonbonded = openmm.NonbondedForce()
    nonbonded.setNonbondedMethod(openmm.NonbondedForce.LJPME)
    for _ in range(3):
        nonbonded.addParticle(0.0, 0.3, 1.0)
    system.removeForce(0)
    system.addForce(nonbonded)
    with pytest.raises(ParameterError, match="LJPME"):
        interop.from_openmm(system, positions=np.zeros((3, 3)))


def test_constraints_of_water_and_of_bonds():
    """Rigid water becomes `RigidWater`, a bond with hydrogen a fixed distance, met as OpenMM does."""
    with jax.enable_x64(True):
        topology, positions = peptide()
        field = app.ForceField("amber14-all.xml", "amber14/tip3p.xml")
        modeller = app.Modeller(topology, positions)
        water = app.Topology()
        residue = water.addResidue("HOH", water.addChain())
        atoms = [
            water.addAtom(n, app.Element.getBySymbol(n[0]), residue) for n in ("O", "H1", "H2")
        ]
        water.addBond(atoms[0], atoms[1])
        water.addBond(atoms[0], atoms[2])
        place = [openmm.Vec3(*x) for x in ((2.0, 0, 0), (2.09572, 0, 0), (1.976, 0.0927, 0))]
        modeller.add(water, place * openmm.unit.nanometer)
        system = field.createSystem(modeller.topology, constraints=app.HBonds)
        found, _ = interop.from_openmm(system, modeller.topology, modeller.positions)
        rigid, bonds = found.constraints.parts
        assert isinstance(rigid, RigidWater)
        assert float(rigid.oh) == pytest.approx(0.09572)
        assert bonds.pairs.shape == (12, 2)
        platform = openmm.Platform.getPlatformByName("Reference")
        context = openmm.Context(system, openmm.VerletIntegrator(1e-3), platform)
        context.setPositions(modeller.positions)
        context.applyConstraints(1e-10)
        expected = context.getState(getPositions=True).getPositions(asNumpy=True)._value
        np.testing.assert_allclose(constrain(found).position, expected, atol=2e-7)


def solvated(edge, method, cutoff, **options):
    """The peptide in a cube of TIP3P water, of Amber 14."""
    topology, positions = peptide()
    field = app.ForceField("amber14-all.xml", "amber14/tip3p.xml")
    modeller = app.Modeller(topology, positions)
    modeller.addSolvent(field, boxSize=openmm.Vec3(edge, edge, edge), neutralize=False)
    system = field.createSystem(
        modeller.topology, nonbondedMethod=method, nonbondedCutoff=cutoff, **options
    )
    return system, modeller.topology, modeller.positions


@pytest.mark.slow
def test_alanine_dipeptide_in_water_by_particle_mesh_ewald():
    """Every kind of energy to 1e-5, forces to 1e-4, with rigid water.

    The dispersion correction is left out: OpenMM counts particles as partners of themselves in it, which makes
    1/N of it.
    """
    with jax.enable_x64(True):
        case = solvated(2.2, app.PME, 1.0, constraints=app.HBonds, ewaldErrorTolerance=1e-6)
        assert find(interop.from_openmm(*case).force, "lennard_jones").tail
        without_dispersion_correction(case[0])
        particles, force = require_same(*case)
        assert particles.num_particles > 900
        assert set(force.term_names) >= {"coulomb", "torsions"}
        assert find(force, "lennard_jones").cutoff == pytest.approx(1.0)


def without_dispersion_correction(system):
    for force in system.getForces():
        if type(force).__name__ == "NonbondedForce":
            force.setUseDispersionCorrection(False)


@pytest.mark.slow
def test_reaction_field_and_switch():
    with jax.enable_x64(True):
        case = solvated(1.4, app.CutoffPeriodic, 0.6, switchDistance=0.5)
        without_dispersion_correction(case[0])
        _, force = require_same(*case, energy=1e-8, force=1e-7)
        assert find(force, "lennard_jones").switch_start == pytest.approx(0.5)


def test_switch_and_dispersion_correction():
    """Argon, with the correction and without: energies of both and their difference."""
    box, n = 3.0, 27
    system, force = openmm.System(), openmm.NonbondedForce()
    system.setDefaultPeriodicBoxVectors(*(box * np.eye(3)))
    topology = app.Topology()
    chain = topology.addChain()
    for _ in range(n):
        system.addParticle(39.948)
        force.addParticle(0.0, 0.34, 1.0)
        residue = topology.addResidue("Ar", chain)
        topology.addAtom("Ar", app.Element.getBySymbol("Ar"), residue)
    force.setNonbondedMethod(openmm.NonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(1.2)
    force.setUseSwitchingFunction(True)
    force.setSwitchingDistance(0.9)
    system.addForce(force)
    x = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3) * 0.95 + 0.3
    energies = []
    with jax.enable_x64(True):
        for corrected in (True, False):
            force.setUseDispersionCorrection(corrected)
            context = openmm.Context(
                system,
                openmm.VerletIntegrator(1e-3),
                openmm.Platform.getPlatformByName("Reference"),
            )
            context.setPositions(x)
            theirs = context.getState(getEnergy=True).getPotentialEnergy()._value
            found = interop.from_openmm(system, topology, x * openmm.unit.nanometer)
            ours = interop.single_point(found.force, found.particles).energy
            energies.append((theirs, ours))
        (whole, ours), (cut, ours_cut) = energies
        assert ours_cut == pytest.approx(cut, rel=1e-9)
        assert ours - ours_cut == pytest.approx(whole - cut, rel=1e-6)


@pytest.mark.slow
def test_water_with_virtual_sites():
    """TIP4P-Ew by the reaction field: charges on sites that are no particles here."""
    modeller = app.Modeller(app.Topology(), [] * openmm.unit.nanometer)
    field = app.ForceField("tip4pew.xml")
    modeller.addSolvent(field, model="tip4pew", boxSize=openmm.Vec3(1.4, 1.4, 1.4))
    with jax.enable_x64(True):
        system = field.createSystem(
            modeller.topology, nonbondedMethod=app.CutoffPeriodic, nonbondedCutoff=0.6
        )
        without_dispersion_correction(system)
        case = system, modeller.topology, modeller.positions
        particles, force = require_same(*case, energy=1e-8, force=1e-7)
        assert 4 * particles.num_particles == 3 * system.getNumParticles()
        assert isinstance(find(force, "coulomb"), VirtualSites)
        assert isinstance(particles.constraints.parts[0], RigidWater)


@pytest.mark.slow
def test_a_net_charge_is_asked_for():
    """A neutralizing background, which OpenMM takes for granted."""
    with jax.enable_x64(True):
        system, force = openmm.System(), openmm.NonbondedForce()
        system.setDefaultPeriodicBoxVectors(*(2.0 * np.eye(3)))
        for charge in (1.0, 1.0, -1.0):
            system.addParticle(23.0)
            force.addParticle(charge, 0.3, 0.0)
        force.setNonbondedMethod(openmm.NonbondedForce.Ewald)
        force.setCutoffDistance(0.9)
        force.setEwaldErrorTolerance(1e-8)
        system.addForce(force)
        positions = np.array([[0.1, 0.2, 0.3], [0.5, 0.9, 0.4], [1.2, 1.5, 1.0]])
        particles, charged = interop.from_openmm(system, positions=positions)
        with pytest.raises(ParameterError, match="background=True"):
            init(Simulation(VelocityVerlet(charged), dt=1e-3), particles)
        require_same(system, None, positions, energy=1e-6, force=1e-5, background=True)
