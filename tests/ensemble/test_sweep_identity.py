"""A folder goes on only with its own sweep, code included; damaged chunks are found and computed anew."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.ensemble import SweepFolder, collect, execute
from physkit.ensemble.store._sweep_folder import require_consistent
from physkit.simulate.driver._run_identity import member_code_digest
from physkit.storage import Identity, Table

from .sweep_problems import damping, pendulum

ROOT = Path(__file__).parents[2]
FACTOR, LEVEL, NAME = 1.0, 0.5, "a"


def slowed(x):
    return FACTOR * x


class Decay(pk.AbstractTendency):
    """dy/dt = −rate·y, by a helper that its method calls."""

    rate: jax.Array = pk.param(1.0)

    def __call__(self, clock, state, cache):
        return -slowed(self.rate) * state, cache


def rate(model):
    return pk.find(model, Decay).rate


def _state(now):
    return now.state


def share_above(values):
    return {"share": np.mean(values > LEVEL, axis=0), "named": np.asarray(NAME in {"a", "b", "c"})}


share = pk.reductions.Reduction(
    "y",
    "share",
    share_above,
    lambda a, b: {k: a[k] + b[k] for k in a},
    lambda whole: whole["share"],
)


def decay_sweep(values=(0.5, 1.0, 1.5, 2.0), state=1.0, **more):
    record = pk.Every(2, y=_state)
    model = pk.Simulation(pk.RK4(Decay()), dt=0.1, observers=record), jnp.full(3, state)
    return pk.Sweep(model, 4, over=pk.SweepAxis(rate, list(values), name="rate"), **more)


def quiet(sweep, folder, **more):
    return execute(sweep, folder, progress=False, **more)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "a"
    quiet(decay_sweep(), folder, chunk_size=2)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    (tmp_path / "chunks").mkdir()
    for path in finished.rglob("*.h5"):
        (tmp_path / path.relative_to(finished)).write_bytes(path.read_bytes())
    return tmp_path


@pytest.mark.filterwarnings("ignore:.*from outside, which has changed")
def test_a_changed_helper_of_a_method_is_another_sweep(folder, monkeypatch):
    (folder / "chunks" / "000001.h5").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decay_sweep().digest == SweepFolder(folder).digest
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert decay_sweep().digest == SweepFolder(folder).digest  # all that version 0.2 saw
    with pytest.raises(
        pk.errors.MismatchError, match=r"(?s)is of another sweep.*the code: .* the simulation is"
    ):
        quiet(decay_sweep(), folder)


@pytest.mark.filterwarnings("ignore:.*from outside, which has changed")
def test_what_differs_is_named(folder):
    for other, match in (
        (decay_sweep(state=2.0), r"the state: float64\[3\] "),
        (decay_sweep(values=(0.5, 1.0, 1.5, 2.5)), r"the values: rate .*2\.0.* in the folder"),
        (decay_sweep(key=jax.random.key(1)), r"the random key: none in the folder"),
        (decay_sweep(reduce=pk.reductions.Mean("y")), r"the statistics: .*Mean"),
    ):
        with pytest.raises(pk.errors.MismatchError, match=match) as caught:
            quiet(other, folder)
        # With a key the program has one more input; what else differs is in no program.
        unchanged = "traced from the simulation" not in str(caught.value)
        assert unchanged or other.key is not None


def test_what_statistics_read_from_outside_counts(tmp_path, monkeypatch):
    quiet(decay_sweep(reduce=share), tmp_path, chunk_size=2)
    (tmp_path / "chunks" / "000001.h5").unlink()
    monkeypatch.setitem(globals(), "LEVEL", 0.6)
    with pytest.raises(pk.errors.MismatchError, match=r"the code: .* the statistics"):
        quiet(decay_sweep(reduce=share), tmp_path)
    monkeypatch.setitem(globals(), "LEVEL", 0.5)
    quiet(decay_sweep(reduce=share), tmp_path)


def test_folders_of_0_2_go_on_with_a_warning(folder, monkeypatch):
    monkeypatch.setattr(Identity, "from_table", classmethod(lambda cls, table: None))
    with pytest.warns(UserWarning, match=r"did not note the code.* cannot be checked"):
        quiet(decay_sweep(), folder)
    with pytest.raises(pk.errors.MismatchError, match=r"begun by \d"):
        quiet(decay_sweep(state=2.0), folder)


CHILD = """
import os, json, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
import jax
jax.config.update("jax_enable_x64", True)
from tests.ensemble.test_sweep_identity import decay_sweep, share
print(json.dumps(decay_sweep(key=jax.random.key(4), reduce=share).identity.digests))
"""


def test_identities_are_those_of_other_processes():
    """Of this one, and of one with another hash seed and number of devices."""
    ours = decay_sweep(key=jax.random.key(4), reduce=share).identity.digests
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        env={**os.environ, "PYTHONHASHSEED": "54321", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    assert json.loads(child.stdout) == json.loads(json.dumps(ours))
    assert "the code (the simulation)" in child.stdout


def is_silent(folder, path, truth, original):
    """Whether a mutated chunk is read as other numbers without an error."""
    try:
        found = collect(folder)
        same = all(np.array_equal(np.asarray(found[n]), truth[n]) for n in truth)
        silent = not same or not np.array_equal(found.coordinates["rate"], [0.5, 1.0, 1.5, 2.0])
    except pk.errors.PhyskitError:
        silent = False
    path.write_bytes(original)
    return silent


def mutations(original, path, rng, flips):
    """Files with a flipped bit, zeroed pages or extents, and cut short."""
    for _ in range(flips):
        data = bytearray(original)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        yield bytes(data)
    for begin in range(0, len(original), 512):
        yield original[:begin] + bytes(len(original[begin : begin + 512])) + original[begin + 512 :]
    for fraction in (0.2, 0.9, 0.999):
        yield original[: int(fraction * len(original))]
    with h5py.File(path) as file:
        extents = [
            (x.id.get_offset(), x.id.get_storage_size())
            for x in file.values()
            if isinstance(x, h5py.Dataset) and x.id.get_offset() is not None
        ]
    for begin, size in extents:
        for part in (size, 8):  # all of an array, and its first number
            yield original[:begin] + bytes(part) + original[begin + part :]
            yield original[:begin] + b"\x3f" * part + original[begin + part :]


@pytest.mark.parametrize("flips", [20, pytest.param(1500, marks=pytest.mark.slow)])
def test_no_mutation_of_a_chunk_is_read_as_numbers(folder, flips):
    truth = {name: np.asarray(x) for name, x in collect(folder).items()}
    path = folder / "chunks" / "000001.h5"
    original, rng = path.read_bytes(), np.random.default_rng(5)
    silent = number = 0
    for data in list(mutations(original, path, rng, flips)):
        path.write_bytes(data)
        silent += is_silent(folder, path, truth, original)
        number += 1
    assert number > flips + 20
    assert silent == 0


def test_a_damaged_chunk_is_named_and_computed_anew(folder, finished):
    path = folder / "chunks" / "000001.h5"
    data = bytearray(path.read_bytes())
    with h5py.File(path) as file:
        offset = file["frames y"].id.get_offset()
    data[offset + 3] ^= 4
    path.write_bytes(bytes(data))
    with pytest.warns(UserWarning, match=r"000001\.h5.*chunk 1 is computed anew"):
        assert quiet(decay_sweep(), folder).computed == (1,)
    assert path.with_suffix(".damaged").is_file()
    np.testing.assert_array_equal(
        np.asarray(collect(folder)["y"]), np.asarray(collect(finished)["y"])
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_chunk_without_permission_is_not_damaged(folder):
    (folder / "chunks" / "000001.h5").chmod(0)
    with pytest.raises(pk.errors.FileError, match="permission denied"):
        quiet(decay_sweep(), folder)


def test_forged_counts_are_damage(folder):
    table = SweepFolder(folder).table
    rows = {name: {"dims": [], "shape": [], "dtype": "int64"} for name in table}
    loaded = {name: table[name] for name in table}
    for change in ({"members": 10**15}, {"chunk": 0}, {"chunks": 10**12}, {"replicas": "many"}):
        forged = Table(table.path, {**table.metadata, **change}, rows, loaded)
        with pytest.raises(pk.errors.DamagedFileError, match=r"sweep\.h5: its counts"):
            require_consistent(forged)


class TestAxes:
    def test_two_axes_on_one_number_are_refused(self):
        first = pk.SweepAxis(damping, [0.1, 0.2], name="a")
        second = pk.SweepAxis(damping, [1.0, 2.0], name="b")
        for over in ([first, second], pk.designs.zip_axes(first, second)):
            with pytest.raises(pk.errors.ParameterError, match="a and b sweep the same number"):
                pk.Sweep(pendulum(), 20, over=over)
        whole = pk.SweepAxis("state", jnp.zeros((2, 2)), name="whole")
        part = pk.SweepAxis(lambda m: m[1][0], [0.1, 0.2], name="angle")
        with pytest.raises(pk.errors.ParameterError, match="sweep the same number"):
            pk.Sweep(pendulum(), 20, over=[whole, part])
        keys = [pk.SweepAxis("key", [1, 2], name=name) for name in ("k", "l")]
        with pytest.raises(pk.errors.ParameterError, match="k and l sweep the same number"):
            pk.Sweep(pendulum(), 20, over=keys)
        other = pk.SweepAxis(lambda m: m[1][1], [0.1, 0.2], name="speed")
        assert pk.Sweep(pendulum(), 20, over=[part, other]).num_members == 4

    @pytest.mark.parametrize("name", ["point", "order", "member", "ok", "replica", "group"])
    def test_names_of_columns_are_refused(self, name):
        with pytest.raises(pk.errors.ParameterError, match=f"cannot be called '{name}'"):
            pk.Sweep(pendulum(), 20, over=pk.SweepAxis(damping, [0.1, 0.2], name=name))


def test_a_state_in_single_precision_while_double_is_on_has_an_identity():
    simulation, state = pendulum()
    single = jax.tree.map(lambda x: x.astype(jnp.float32), state)
    assert member_code_digest(simulation, single, None) is not None
