"""Sweeps that are stopped, killed and begun again: the same bits, and nothing is lost."""

import jax
import numpy as np
import pytest
from jaxtyping import TypeCheckError

import physkit as pk
from physkit.ensemble import execute, run_worker
from physkit.ensemble.compute._chunk_runner import ChunkRunner
from physkit.ensemble.compute._local_devices import as_local_devices
from physkit.simulate import ChunkScheduler


def atoms(edge, temperature=1.0):
    """49 atoms in a square: one of edge 8 is dense, of 12 dilute."""
    site = (np.arange(7) + 0.5) * edge / 7
    places = np.stack(np.meshgrid(site, site, indexing="ij"), axis=-1).reshape(-1, 2)
    still = pk.Particles(places, space=pk.Box((edge, edge)))
    return pk.maxwell_boltzmann(jax.random.key(1), still, temperature)


def sweep_of_atoms(states, steps, exact):
    force = pk.Pairwise(pk.LennardJones(), 2.5, 0.3, exact=exact, use_neighbor_list=True)
    observers = pk.Every(10, x=pk.Positions())
    sim = pk.Simulation(pk.VelocityVerlet(force), dt=0.004, observers=observers)
    return pk.Sweep((sim, states[0]), steps, over=pk.designs.initial_states(states))


def capacities(monkeypatch):
    """Those that chunks begin with, in order, noted from now on."""
    noted = []
    path = "physkit.ensemble.compute._chunk_runner.resize_caches"
    resize = pk.ensemble.compute._common_capacity.resize_caches
    monkeypatch.setattr(path, lambda aux, capacity: noted.append(capacity) or resize(aux, capacity))
    return noted


@pytest.mark.slow
@pytest.mark.parametrize("exact", [False, True])
def test_a_chunk_has_the_same_bits_whichever_were_computed_before(tmp_path, monkeypatch, exact):
    sweep = sweep_of_atoms([atoms(8.0), atoms(12.0)], 200, exact)
    noted = capacities(monkeypatch)
    whole = pk.sweep(sweep, chunk_size=1, progress=False)
    # As after a restart, or by another worker: the last chunk alone.
    execute(sweep, tmp_path, chunk_size=1, chunks=[1], progress=False)
    assert noted[0] > noted[1] == noted[2]
    np.testing.assert_array_equal(pk.open(tmp_path)["x"][0], whole["x"][1])


@pytest.mark.slow
def test_caches_grow_at_the_same_step_whatever_the_pace(monkeypatch):
    """Dilute atoms that gather: lists overflow on the way, in an attempt of few or of many blocks."""
    sweep = sweep_of_atoms([atoms(12.0, 0.1), atoms(14.0, 0.1)], 1500, exact=False)
    monkeypatch.setattr("physkit.ensemble.compute._chunk_runner.GROWTH_FACTOR", 0.6)
    grow, steps, found = ChunkRunner._grow, [], []

    def grow_and_note(self, batch, after):
        steps[-1].append(int(batch.carry.step.low[0]))
        return grow(self, batch, after)

    monkeypatch.setattr(ChunkRunner, "_grow", grow_and_note)
    for length in (3, 1000):

        class Scheduler(ChunkScheduler):
            blocks = property(lambda self, length=length: length, lambda self, blocks: None)

        monkeypatch.setattr("physkit.ensemble.compute._chunk_runner.ChunkScheduler", Scheduler)
        steps.append([])
        found.append(pk.sweep(sweep, progress=False))
    few, many = found
    assert steps[0] == steps[1]
    assert steps[0][-1] > 0
    assert few.growths == many.growths != ()
    np.testing.assert_array_equal(few["x"][:], many["x"][:])


@pytest.mark.slow
def test_a_chunk_that_was_stopped_goes_on_with_its_grown_caches(tmp_path, monkeypatch):
    sweep = sweep_of_atoms([atoms(12.0, 0.1), atoms(14.0, 0.1)], 1500, exact=False)
    monkeypatch.setattr("physkit.ensemble.compute._chunk_runner.GROWTH_FACTOR", 0.6)
    whole = pk.sweep(sweep, progress=False)
    with monkeypatch.context() as stopping:
        has_grown = lambda self, stop, blocks_left: bool(self.growths) and blocks_left < 100
        stopping.setattr(ChunkRunner, "_should_stop", has_grown)
        execute(sweep, tmp_path, chunk_size=2, progress=False)
    assert [path.name for path in (tmp_path / "chunks").iterdir()] == ["000000.partial"]
    resumed = pk.sweep(sweep, to=tmp_path, progress=False)
    np.testing.assert_array_equal(resumed["x"][:], whole["x"][:])


def test_arguments_that_would_be_taken_for_others_are_refused(tmp_path):
    model = pk.systems.lorenz()
    for message, more in (
        ("keep is True, False, or names", {"keep": "position"}),
        ("keep is True, False, or names", {"keep": 3}),
        ("reduce= takes statistics", {"reduce": None}),
        ("devices are JAX devices of this process", {"devices": 2}),
        ("devices are JAX devices of this process", {"devices": [0]}),
        ("devices are JAX devices of this process", {"devices": jax.local_devices()[:1] * 2}),
        ("wall_time is a number of seconds", {"wall_time": float("nan")}),
    ):
        # What is not of the annotated type is refused by the check of annotations here, by physkit elsewhere.
        with pytest.raises((pk.errors.ParameterError, TypeCheckError), match=f"{message}|violates"):
            pk.sweep(model, 20, to=tmp_path, progress=False, **more)
    assert not list(tmp_path.iterdir())
    with pytest.raises(pk.errors.ParameterError, match="keep is True"):
        pk.Sweep(model, 20, keep="position")
    for devices in (2, [0], (2, 2), []):
        with pytest.raises(pk.errors.ParameterError, match="of this process, for a test: jax"):
            as_local_devices(devices, "for a test")
    with pytest.raises(pk.errors.ParameterError, match="wall_time"):
        run_worker(pk.Sweep(model, 20), tmp_path, wall_time=float("nan"), progress=False)
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_beside_its_finished_chunk_is_removed(tmp_path, monkeypatch):
    sweep = pk.Sweep(pk.systems.lorenz(), 20, over=pk.SweepAxis(lambda m: m[1][0], [0.0, 1.0]))
    execute(sweep, tmp_path, chunk_size=1, chunks=[0], progress=False)
    # As a kill between the last write and its removal leaves it; that of a chunk under way stays.
    for number in (0, 1):
        (tmp_path / "chunks" / f"00000{number}.partial").write_bytes(b"some")
    execute(sweep, tmp_path, chunk_size=1, chunks=[0], progress=False)
    assert sorted(p.name for p in (tmp_path / "chunks").iterdir()) == [
        "000000.h5",
        "000001.partial",
    ]


def test_a_sweep_does_not_go_on_under_other_names_of_its_groups(tmp_path):
    models = [pk.systems.lorenz(), pk.systems.lorenz(rho=20.0)]
    pk.sweep(models, 20, groups=("a", "b"), to=tmp_path, progress=False)
    with pytest.raises(
        pk.errors.MismatchError, match=r"groups \['a', 'b'\], this sweep \['b', 'a'\]"
    ):
        pk.sweep(models, 20, groups=("b", "a"), to=tmp_path, progress=False)
    # Without names those of the folder count.
    assert pk.sweep(models, 20, to=tmp_path, progress=False).groups == ("a", "b")
