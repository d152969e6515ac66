"""The structure of a peptide, to begin with."""

from pathlib import Path

_DATA = Path(__file__).parent.parent / "data"


def alanine_dipeptide_pdb() -> Path:
    """The path of a PDB file of alanine dipeptide, CH₃CO–Ala–NHCH₃: 22 atoms with ideal bond lengths.

    pdb = openmm.app.PDBFile(str(pk.systems.alanine_dipeptide_pdb()))
    system = ForceField("amber14-all.xml").createSystem(pdb.topology)
    particles, force = pk.interop.from_openmm(system, pdb.topology, pdb.positions)
    """
    return _DATA / "alanine_dipeptide.pdb"
