"""Files that version 0.1 wrote still open: recordings, checkpoints, sweeps.

The folders in `data_0_1/` were written by 0.1 from the models below, in its own names (`of=`, `Values`,
`Positive`, …): ten steps each, with every observer whose state a checkpoint holds.
"""

import importlib
import pkgutil
import shutil
import warnings
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import MismatchError
from physkit.fields import Field, Gas
from physkit.fields.equations import CompressibleEuler, Diffusion
from physkit.geometry import Box, Grid, Outflow
from physkit.integrators import BAOAB, SSPRK3
from physkit.observe import (
    Average,
    BlockAverage,
    CourantLimit,
    EnergyDrift,
    Every,
    FieldValues,
    Finite,
    FirstPassage,
    Integral,
    MeanSquareDisplacement,
    Positions,
    PositivityGuard,
    Pressure,
    RadialDistribution,
    StructureFactor,
    Temperature,
    TotalEnergy,
    Velocities,
    VelocityAutocorrelation,
)
from physkit.particles import Particles, lattice, maxwell_boltzmann
from physkit.particles.forces import HarmonicBonds, LennardJones, Pairwise
from physkit.simulate import Simulation, init, run
from physkit.storage import (
    Checkpoints,
    is_trajectory,
    load_checkpoint,
    load_component,
    save_checkpoint,
)
from physkit.storage.checkpoint import _checkpoint as checkpoints, _names_0_1 as names
from physkit.storage.checkpoint._checkpoint import read_checkpoint_table
from physkit.storage.checkpoint._version_vocabulary import VERSION_0_2

DATA = Path(__file__).with_name("data_0_1")


def particles():
    """Thirty-two atoms, two bonds, friction and noise, and whatever may be observed of them."""
    sites, box = lattice.face_centered_cubic(2, density=0.6)
    atoms = Particles(sites, space=box, species=jnp.arange(32, dtype=jnp.int32) % 2)
    atoms = maxwell_boltzmann(jax.random.key(0), atoms, 1.0)
    bonds = HarmonicBonds(jnp.array([[0, 1], [2, 3]], jnp.int32), 10.0, 1.1)
    force = Pairwise(LennardJones(), cutoff=1.5, skin=0.2)
    simulation = Simulation(
        BAOAB(force + bonds, temperature=1.0, friction=1.0),
        dt=0.002,
        observers=[
            Every(5, x=Positions(), v=Velocities()),
            Every(1, energy=TotalEnergy()),
            Average(5, pressure=Pressure()),
            BlockAverage(5, temperature=Temperature()),
            MeanSquareDisplacement(5, 2),
            VelocityAutocorrelation(5, 2),
            RadialDistribution(5, 1.4, 4, species=(0, 1)),
            StructureFactor(5, [[1, 0, 0]]),
            FirstPassage(5, far=lambda now: now.state.position[0, 0] > 1.0),
        ],
        guards=[Finite(), EnergyDrift(5, 10.0)],
    )
    return simulation, atoms


def fields():
    """A gas in a channel, and heat on a plane."""
    grid = Grid(Box([1.0, 1.0], (False, True)), (6, 3))
    gas = Gas.from_primitive(
        grid, lambda x, y: 1.0 + 0.1 * x + 0 * y, (0.1, 0.0), 1.0, 1.4, Outflow()
    )
    heat = Field(jnp.arange(12.0).reshape(4, 3), Grid([1.0, 1.0], (4, 3)))
    simulation = Simulation(
        SSPRK3(CompressibleEuler(1.4, component="gas"), Diffusion(0.1, component="heat")),
        dt=0.002,
        observers=[
            Every(5, u=FieldValues("heat"), mean=Integral(component="heat")),
            Every(5, density=lambda now: now.state["gas"].density.data),
        ],
        guards=[Finite(), PositivityGuard(component="gas"), CourantLimit(0.8)],
    )
    return simulation, {"gas": gas, "heat": heat}


def begun(simulation, state, key=None):
    """A carry of the structure that it has once a run is under way."""
    return init(simulation, state, key=key).replace(is_initial=False)


def checkpoint(name):
    return Checkpoints(DATA / name / "checkpoints").paths()[0]


def test_trajectory_and_series_open():
    found = pk.open(DATA / "particles")
    assert sorted(found) == ["energy", "v", "x"]
    assert is_trajectory(found["x"])
    assert (found["x"].shape, found["energy"].shape) == ((3, 32, 3), (11,))
    np.testing.assert_array_equal(found["x"].step, [0, 5, 10])
    _, atoms = particles()
    first = load_component(found["x"], 0)
    np.testing.assert_allclose(first.position, atoms.position, atol=1e-6)
    np.testing.assert_array_equal(first.species, atoms.species)
    assert found.provenance["series.h5"]["physkit"] == "0.1.0"


def test_fields_open():
    found = pk.open(DATA / "fields")
    assert sorted(found) == ["density", "mean", "u"]
    _, state = fields()
    np.testing.assert_allclose(found["u"][0], state["heat"].data, atol=1e-6)
    np.testing.assert_allclose(found["density"][0], state["gas"].density.data, rtol=1e-14)
    assert load_component(found["u"], -1).grid.shape == (4, 3)


def test_sweep_opens_with_its_statistics():
    found = pk.open(DATA / "sweep")
    np.testing.assert_array_equal(found.coordinates["damping"], [0.1, 0.2, 0.3])
    angle = np.asarray(found["angle"])
    assert angle.shape == (3, 3)
    np.testing.assert_array_equal(angle[:, 0], 0.5)
    np.testing.assert_allclose(found.reduced["mean angle"], angle.mean(0), rtol=1e-14)
    np.testing.assert_allclose(found.reduced["quantiles angle"][0], np.median(angle, 0), rtol=1e-14)


def test_checkpoint_of_particles_opens():
    simulation, atoms = particles()
    carry = begun(simulation, atoms, key=jax.random.key(3))
    found = load_checkpoint(checkpoint("particles"), carry, sim=simulation)
    assert (found.step, int(found.tree.step)) == (10, 10)
    last = pk.open(DATA / "particles")["x"][-1]
    np.testing.assert_allclose(found.tree.state.position, last, atol=1e-6)
    assert any("physkit 0.1.0" in change for change in found.environment_changes)
    # Only functions may seem to have changed: their bytecode names what they call.
    assert all("lambda" in change for change in found.simulation_changes)
    with pytest.raises(MismatchError, match="another simulation or state"):
        load_checkpoint(checkpoint("particles"), carry.replace(guards=()))


def test_checkpoint_of_fields_opens():
    simulation, state = fields()
    found = load_checkpoint(checkpoint("fields"), begun(simulation, state), sim=simulation)
    np.testing.assert_allclose(
        found.tree.state["heat"].data, pk.open(DATA / "fields")["u"][-1], atol=1e-6
    )
    assert all("lambda" in change for change in found.simulation_changes)


def test_run_goes_on_from_a_checkpoint_of_0_1(tmp_path):
    folder = tmp_path / "fields"
    shutil.copytree(DATA / "fields", folder)
    simulation, state = fields()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        more = run(simulation, state, 20, to=folder, resume=True, progress=False)
    assert any("physkit 0.1.0" in str(warning.message) for warning in caught)
    assert more.resumed_from == 10
    whole = run(simulation, state, 20, progress=False)
    np.testing.assert_array_equal(pk.open(folder)["mean"].step, [0, 5, 10, 15, 20])
    np.testing.assert_allclose(pk.open(folder)["density"][:], whole["density"], rtol=1e-12)


def test_every_renamed_class_and_field_exists():
    """Whoever renames one of them again must tell the table."""
    for module in pkgutil.walk_packages(pk.__path__, "physkit."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    known = {}
    waiting = [pk.core.Module]
    while waiting:
        for cls in waiting.pop().__subclasses__():
            known.setdefault(cls.__qualname__, set()).update(
                getattr(cls, "__dataclass_fields__", {})
            )
            waiting.append(cls)
    named_tuples = {"CFLSubstepsAux", "SemilinearAux", "SemilinearPlan"}
    assert set(names.CLASSES) - named_tuples <= set(known)
    for cls, fields in names.FIELDS.items():
        assert set(fields) <= known[cls], cls


def test_table_keeps_the_names_of_0_1():
    table = read_checkpoint_table(checkpoint("particles"))
    assert table["provenance"]["physkit"] == "0.1.0"
    assert ".memory[2]['pressure'].spread.high" in table["leaves"]


def test_gas_of_0_2_opens(tmp_path, monkeypatch):
    """A `Gas` did not note its γ: it is that of the run which goes on."""
    simulation, state = fields()
    carry = begun(simulation, state)
    gas = Gas(*state["gas"].parts().values())
    old = carry.replace(state={**carry.state, "gas": gas})
    provenance = {**checkpoints.collect_provenance(), "physkit": "0.2.0"}
    describe = partial(checkpoints.describe_tree, vocabulary=VERSION_0_2)
    with monkeypatch.context() as of_0_2:
        of_0_2.setattr(checkpoints, "collect_provenance", lambda: provenance)
        of_0_2.setattr(checkpoints, "describe_tree", describe)
        save_checkpoint(tmp_path / "old.h5", old, sim=simulation)
    found = load_checkpoint(tmp_path / "old.h5", carry, sim=simulation)
    assert not found.simulation_changes
    np.testing.assert_array_equal(found.tree.state["gas"].gamma, 1.4)
    np.testing.assert_array_equal(found.tree.state["gas"].energy.data, gas.energy.data)
