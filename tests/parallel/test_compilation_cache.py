"""Compiled programs on disk: kept for the next process, shared by several; no run fails for want of them."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import physkit as pk
from physkit.parallel import note_on_compiling, usable_cores, use_compilation_cache

ROOT = Path(__file__).parents[2]

# Compiles one program of its own and prints where programs are kept, what was read from there, and the result.
SCRIPT = """
import os, resource, sys, warnings
if "alone" in sys.argv:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import jax, jax.numpy as jnp
if "strict" in sys.argv:
    warnings.simplefilter("error")
jax.jit(lambda x: x + 1)(1.0)  # JAX has decided about its cache before it is told of one
from physkit.parallel import use_compilation_cache
folder = use_compilation_cache()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
if "full" in sys.argv:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # no file may be longer: writing fails on the way
events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event))
value = jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x).T)(jnp.ones((3, 3)))
print(folder, "hit" if "/jax/compilation_cache/cache_hits" in events else "miss", float(value[0, 0]))
"""


def environment(home: Path) -> dict[str, str]:
    settings = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    return settings | {"XDG_CACHE_HOME": str(home), "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}


def start(home: Path, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return subprocess.Popen(
        command, env=environment(home), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(process: subprocess.Popen) -> tuple[str, str, str, str]:
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    folder, found, value = out.split()
    return folder, found, value, errors


@pytest.mark.slow
def test_programs_are_kept_for_the_next_process_and_shared_by_several(tmp_path):
    started = [start(tmp_path, "strict") for _ in range(4)]
    first = [finish(process) for process in started]
    (folder,) = {folder for folder, _, _, _ in first}
    assert Path(folder).parent == tmp_path / "physkit"
    assert len({value for _, _, value, _ in first}) == 1
    assert any(found == "miss" for _, found, _, _ in first)
    _, found, value, _ = finish(start(tmp_path, "strict"))
    assert (found, value) == ("hit", first[0][2])
    assert (tmp_path / "physkit").stat().st_mode & 0o077 == 0, "others could put programs there"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where two tests keep programs: each process costs seconds."""
    return tmp_path_factory.mktemp("home")


def test_a_full_disk_costs_a_warning_once(home):
    _, _, value, errors = finish(start(home, "full"))
    assert "Error writing persistent compilation cache" in errors
    assert list((home / "physkit").glob("*/*-cache")), "nothing was cut off: this shows nothing"
    # What was cut off is no obstacle to the next process, which compiles and keeps the program.
    assert finish(start(home, "strict"))[1:3] == ("miss", value)
    assert finish(start(home, "strict"))[1:3] == ("hit", value)


@pytest.fixture
def without_cache():
    """JAX as it is where nobody has asked for a cache."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", before)


def test_a_folder_that_cannot_be_written_is_told_and_does_without(
    tmp_path, monkeypatch, without_cache
):
    (tmp_path / "file").touch()
    with pytest.warns(pk.errors.PhyskitWarning, match=r"not kept .*name a folder"):
        assert use_compilation_cache(tmp_path / "file" / "cache") is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(pk.errors.PhyskitWarning, match="not kept"):
        assert pk.use_compilation_cache() is None
    assert jax.config.jax_compilation_cache_dir is None
    assert "JAX_COMPILATION_CACHE_MAX_SIZE" not in os.environ


def test_what_jax_was_told_already_stays(monkeypatch):
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_compilation_cache_max_size
    assert str(use_compilation_cache()) == before[0]
    assert jax.config.jax_compilation_cache_max_size == before[1]


def test_long_compilations_are_told_where_nothing_is_kept(without_cache, monkeypatch, capsys):
    assert note_on_compiling(9.0) is None
    assert "compiling took 14 s" in str(note_on_compiling(14.0))
    monkeypatch.setattr("physkit.parallel._compilation_cache._LONG_COMPILATION", 0.0)
    sim = pk.Simulation(pk.RK4(pk.Function(lambda t, y: -y)), dt=0.1)
    pk.run(sim, 1.0, 2)
    assert capsys.readouterr().err.count("pk.use_compilation_cache()") == 1
    jax.config.update("jax_compilation_cache_dir", "/anywhere")
    assert note_on_compiling(14.0) is None


@pytest.mark.skipif(usable_cores() < 2, reason="a process of one core")
def test_programs_for_other_numbers_of_cores_are_others(home):
    """XLA divides the work among cores when it compiles."""
    if not list((home / "physkit").glob("*")):  # the test before was left out
        finish(start(home))
    (others,) = (home / "physkit").glob("*")
    alone, found, _, _ = finish(start(home, "alone"))
    assert Path(alone).name == "cores-1"
    assert Path(alone) != others
    assert found == "miss"


# On several CPU devices: prints how many programs were looked for in the cache, alone and over the devices.
OVER_DEVICES = """
import sys
import jax, jax.numpy as jnp
jax.config.update("jax_num_cpu_devices", 2)
from physkit.parallel import Spmd, use_compilation_cache
use_compilation_cache()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
def total(comm, x):
    return comm.psum(x)
over_devices = Spmd(total, (2,), backend=sys.argv[1])
if sys.argv[2] == "gradient":
    over_devices = jax.jit(jax.grad(lambda x: Spmd(total, (2,), backend=sys.argv[1])(x)[0].sum()))
events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event))
def looked_for():
    return sum(event == "/jax/compilation_cache/compile_requests_use_cache" for event in events)
x = jax.jit(lambda x: jnp.sin(x))(jnp.ones(2))
alone = looked_for()
over_devices(x)
print(alone, looked_for() - alone)
"""


# Every way to run and both of what is asked, each in a process of its own; the other pairs are slow.
FAST_PAIRS = (("value", "shard_map"), ("gradient", "pmap"), ("gradient", "vmap"))


@pytest.mark.parametrize(
    ("what", "backend"),
    [
        pytest.param(*pair, marks=[pytest.mark.slow] * (pair not in FAST_PAIRS))
        for pair in itertools.product(("value", "gradient"), ("pmap", "shard_map", "vmap"))
    ],
)
def test_programs_over_several_cpus_are_not_cached(tmp_path, backend, what):
    """XLA would mix up the reductions of some of them when it reads them; `vmap` runs on one device."""
    out = subprocess.run(
        [sys.executable, "-c", OVER_DEVICES, backend, what],
        env=environment(tmp_path),
        text=True,
        capture_output=True,
        check=True,
        timeout=120,
    ).stdout
    alone, over_devices = map(int, out.split())
    assert alone > 0
    assert (over_devices == 0) == (backend != "vmap")
