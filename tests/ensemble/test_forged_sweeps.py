"""Folders of sweeps are text and arrays that anybody may have written: errors that say so, nothing else."""

import json
import os
import shutil

import numpy as np
import pytest

import physkit as pk
from physkit.ensemble import SweepFolder, collect, execute, status
from physkit.ensemble.cluster._claims import Claims
from physkit.ensemble.cluster._slurm_queue import record_job, recorded_jobs
from physkit.ensemble.design._sweep import split_into_chunks
from physkit.storage import Column, read_table, write_table

from .sweep_problems import damping, pendulum

ESCAPE = "\x1b[2J\u202e"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "a"
    over = pk.SweepAxis(damping, [0.1, 0.2, 0.3], name="damping")
    sweep = pk.Sweep(pendulum(), 10, over=over, reduce=pk.reductions.Mean("angle"))
    execute(sweep, folder, chunk_size=2, progress=False)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "a")


def forge(path, kind, arrays=None, **changes):
    """Rewrite a table, checksums and all, with other entries."""
    table = read_table(path, kind)
    columns = {n: Column(np.asarray(table[n]), table.dims[n]) for n in table}
    for name, values in (arrays or {}).items():
        columns[name] = Column(values, tuple(f"{name} {k}" for k in range(values.ndim)))
    write_table(path, kind, columns, {**table.metadata, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"frames": ["angle", "gone"]}, {"frames": 3}, {"frames": [[]]}, {"reduced": [1]},
        {"reduced": {"mean angle": ["count"]}}, {"reduced": {"mean angle": ["mean", "mean"]}},
        {"seconds": "long"}, {"seconds": None}, {"growths": 5}, {"summary": {"x": 1}},
        {"arrays": {"reason": np.zeros(5, int)}, "uneventful": 1},
        {"arrays": {"frames angle": np.zeros((5, 3))}},
        {"arrays": {"time of angle": np.zeros(9)}},
    ],
)  # fmt: skip
def test_entries_of_chunks_that_are_not_as_written_are_damage(folder, changes):
    forge(folder / "chunks/000001.h5", "chunk", **changes)
    with pytest.raises(pk.errors.DamagedFileError, match=r"chunks|remove"):
        collect(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"coordinates": ["gone"]}, {"coordinates": "damping"}, {"coordinates": [1]},
        {"groups": 4}, {"groups": ["a", "b"]}, {"reduce": [1]}, {"reduce": "x"},
        {"reduce": [{"kind": "Mean", "fields": {"no": 1}}]}, {"reduce": [{"kind": []}]},
        {"arrays": {"order": np.array([0, 0, 7])}}, {"arrays": {"damping": np.zeros(9)}},
    ],
)  # fmt: skip
def test_entries_of_the_index_that_are_not_as_written_are_damage(folder, changes):
    forge(folder / "sweep.h5", "sweep", **changes)
    with pytest.raises(pk.errors.DamagedFileError, match=r"sweep\.h5"):
        collect(folder)


def test_a_chunk_has_one_name(folder):
    chunks = folder / "chunks"
    (chunks / "000001.h5").unlink()
    for name in ("0000001.h5", "\u0660\u0660\u0660\u0660\u0660\u0661.h5"):
        shutil.copy(chunks / "000000.h5", chunks / name)
    assert SweepFolder(folder).finished_chunks() == [0]


def test_many_groups_are_split_in_no_time():
    chunks = split_into_chunks(np.arange(200_000)[::-1], 1, 7)
    assert len(chunks) == 200_000
    assert chunks[0] == [0]
    both = split_into_chunks(np.array([2, 0, 1, 5, 4, 3]), 3, 2)
    assert [c.tolist() for c in both] == [[2, 0], [1], [5, 4], [3]]


def test_forged_claims_are_those_of_dead_workers(folder):
    chunks = folder / "chunks"
    (chunks / "000001.h5").unlink()
    claim = chunks / "000001.claim"
    for content in (
        "[" * 4000, "9" * 4090, "[]", '"x"', json.dumps({"host": [1], "process": {}}),
        json.dumps({"process": 10**30, "deaths": 10**30, "restarts": -1, "job": ["7"]}),
        json.dumps({"host": "h", "process": 1e300, "deaths": "many", "job": "7", "restarts": True}),
    ):  # fmt: skip
        claim.write_text(content)
        assert "digest" in repr(status(folder))
        assert status(folder).quarantined == ()
    for name in ("\u00b2.claim", "1.claim", "0000001.claim", "000001.\u00b2.claim"):
        (chunks / name).write_text("{}")
    claim.unlink()
    assert Claims(chunks).holders() == {}
    os.mkfifo(claim)
    os.utime(claim, (0, 0))
    claims = Claims(chunks)
    assert claims.acquire(1)
    claims.release(1)
    assert not claim.exists()


def test_names_of_workers_are_printed_without_control_characters(folder):
    (folder / "chunks/000001.h5").unlink()
    holder = {"host": ESCAPE, "process": 1, "job": "7_1", "restarts": 0}
    (folder / "chunks/000001.claim").write_text(json.dumps(holder))
    assert status(folder).running[1]["host"] == ESCAPE
    assert repr(status(folder)).isprintable()
    forge(
        folder / "sweep.h5", "sweep", coordinates=[f"x{ESCAPE}"], arrays={f"x{ESCAPE}": np.zeros(3)}
    )
    assert ESCAPE not in repr(collect(folder))
    assert repr(collect(folder)).replace("\n", "").isprintable()


def test_lists_of_jobs_that_are_no_such_lists_are_refused(tmp_path):
    path = tmp_path / "log/jobs.txt"
    record_job(tmp_path, "7")
    path.write_text(
        "7\n-x\n" + "9" * 30 + "\n\u0667\n8_1\n" + "".join(f"1{k}\n" for k in range(200))
    )
    assert len(recorded_jobs(tmp_path)) == 64
    path.write_text("7\n-x\n8_1\n")
    assert recorded_jobs(tmp_path) == ["7", "8_1"]
    path.unlink()
    os.mkfifo(path)
    assert recorded_jobs(tmp_path) == []
    with pytest.raises(pk.errors.FileError, match="remove it"):
        record_job(tmp_path, "7")
    path.unlink()
    path.symlink_to("/dev/zero")
    assert recorded_jobs(tmp_path) == []
    with pytest.raises(pk.errors.FileError, match="remove it"):
        record_job(tmp_path, "7")
