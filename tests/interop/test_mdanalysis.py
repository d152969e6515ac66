"""Frames and selections of MDAnalysis."""

import jax
import numpy as np
import pytest

from physkit import interop, units
from physkit.core import MissingExtraError, ParameterError
from physkit.geometry import Box, Free, Triclinic

MDAnalysis = pytest.importorskip("MDAnalysis")


def universe(frames=3, cell=(20.0, 30.0, 40.0, 90.0, 90.0, 90.0)):
    """Two molecules of water in a trajectory; the second leaves the cell."""
    u = MDAnalysis.Universe.empty(
        6, 2, atom_resindex=[0, 0, 0, 1, 1, 1], trajectory=True, velocities=True
    )
    u.add_TopologyAttr("elements", ["O", "H", "H"] * 2)
    u.add_TopologyAttr("masses", [15.999, 1.008, 1.008] * 2)
    u.add_TopologyAttr("charges", [-0.834, 0.417, 0.417] * 2)
    u.add_TopologyAttr("resnames", ["WAT", "SOL"])
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 15, (frames, 6, 3)).astype(np.float32)
    x[-1, 3] = [-1.0, 31.0, 5.0]
    u.load_new(x, velocities=x / 10)
    for ts in u.trajectory:
        ts.dimensions = cell
    u.trajectory[-1]
    u.dimensions = cell
    return u, x


def test_a_frame_and_a_selection_become_particles(tmp_path):
    u, x = universe()
    with jax.enable_x64(True):
        particles = interop.from_mdanalysis(u, units.molecular)
        assert isinstance(particles.space, Box)
        np.testing.assert_allclose(particles.space.lengths, [2, 3, 4], rtol=1e-6)
        np.testing.assert_allclose(particles.unwrapped, x[-1] / 10, atol=1e-6)
        np.testing.assert_allclose(particles.position[3], [1.9, 0.1, 0.5], atol=1e-6)
        np.testing.assert_allclose(particles.velocity, x[-1] / 100, rtol=1e-6)  # nm/ps
        assert particles.species_names == ("O", "H")
        np.testing.assert_allclose(particles.charge.sum(), 0, atol=1e-6)
        chosen = interop.from_mdanalysis(u.select_atoms("resname SOL and element H"))
        assert chosen.num_particles == 2
        np.testing.assert_allclose(chosen.unwrapped, x[-1, 4:], atol=1e-5)  # Å
        # Through files, as DCD is written: float32, and no velocities.
        with MDAnalysis.Writer(str(tmp_path / "run.dcd"), 6) as writer:
            writer.write(u.atoms)
        again = MDAnalysis.Universe(u._topology, str(tmp_path / "run.dcd"), to_guess=())
        again = interop.from_mdanalysis(again, units.molecular)
        np.testing.assert_allclose(again.unwrapped, particles.unwrapped, atol=1e-6)
        assert not np.any(again.velocity)


def test_spaces_of_frames():
    u, _ = universe(cell=(20, 20, 20, 60, 60, 90))
    with jax.enable_x64(True):
        assert isinstance(interop.from_mdanalysis(u).space, Triclinic)
    u.dimensions = None
    assert isinstance(interop.from_mdanalysis(u).space, Free)


def test_what_is_no_selection_is_named(monkeypatch):
    u, _ = universe(1)
    with pytest.raises(ParameterError, match="has no atoms"):
        interop.from_mdanalysis(u.select_atoms("resname XYZ"))
    with pytest.raises(ParameterError, match="Universe or AtomGroup; got str"):
        interop.from_mdanalysis("run.dcd")

    def without(name, *rest, **options):
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", without)
    with pytest.raises(MissingExtraError, match=r"needs MDAnalysis: pip install physkit\[md\]"):
        interop.from_mdanalysis("run.dcd")
