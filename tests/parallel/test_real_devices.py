"""Programs for real devices, eight of one CPU, which only a new process can have."""

import json

import pytest

from .emulated import SUBSTEPS, run_module

pytestmark = pytest.mark.compiled_quickly


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["pmap", "shard_map"])
def test_backends_of_real_devices(backend):
    """Collectives of a spectral and of a local program, and a run that changes devices."""
    found = json.loads(run_module("real_devices", backend).splitlines()[-1])
    assert found["poisson"] == {"all-to-all": 4}
    assert found["gray_scott"] == {"collective-permute": 8}
    assert found["devices"] == 1  # no program over devices puts a domain together, on any of them
    assert found["difference"] < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["pmap", "shard_map"])
def test_compiled_programs_gather_nothing(backend):
    """They exchange neighbors' cells, sums and transpositions, and no more of them than needed."""
    names = "gray_scott,gravity_waves,kolmogorov_flow,kuramoto_sivashinsky,stommel_gyre"
    found = json.loads(run_module("compiled_collectives", backend, names).splitlines()[-1])
    assert len(found) == 9
    assert not any(ops.get("all-gather", 0) for ops in found.values()), found
    count = lambda name: found[f"{name}, {backend}"].get("all-to-all", 0)
    assert [count(f"poisson {d}") for d in [(2, 1, 1), (2, 2, 1), (2, 2, 2)]] == [2, 4, 8]
    # Two in each of four stages of a step, three times as many where both axes are cut; the others are of a
    # start, of the steady forcing, of an observation, and of the check that dt resolves what the step does.
    assert count("kolmogorov_flow (2, 1)") == 17
    assert count("kolmogorov_flow (2, 2)") == 51
    assert count("gray_scott (2, 2)") == count("stommel_gyre (2, 2)") == 0


@pytest.mark.slow
def test_every_adjoint_equals_that_of_one_device():
    found = json.loads(run_module("adjoints", "pmap").splitlines()[-1])
    assert len(found) == 5
    assert max(found.values()) < 1e-10, found


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["pmap", "shard_map"])
def test_a_sample_of_the_matrix_equals_one_device(backend, tmp_path):
    """A few systems on emulated devices; `matrix.py` runs all."""
    table = tmp_path / "matrix.jsonl"
    names = "kuramoto_sivashinsky,gray_scott,gravity_waves"
    run_module("matrix", str(table), backend, names)
    for line in table.read_text().splitlines():
        row = json.loads(line)
        assert max(row["differences"]) < 1e-13, row


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBSTEPS)
def test_systems_with_substeps_pass_check_devices(name):
    found = json.loads(run_module("substeps", "pmap", name).splitlines()[-1])
    assert found == [name]
