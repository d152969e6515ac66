"""Compilers and folders that do not work cost speed and nothing else."""

import ctypes
import os
import shutil
import stat
import subprocess
import sys
import time
import uuid
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import PhyskitWarning
from physkit.native import _compiler, _library_cache, c_compiler, native_code_is_used
from physkit.native._c_source import _read
from physkit.native._compiler import load_handler
from physkit.particles.forces.pairs._pair_sum import pair_sum
from physkit.particles.neighbors import AllPairs

HANDLER = """
XLA_FFI_Error *handler(XLA_FFI_CallFrame *frame) {
  if (tells_version(frame)) return NULL;
  const float *x = (*(XLA_FFI_Buffer **)frame->args.args)->data;
  float *y = (*(XLA_FFI_Buffer **)frame->rets.rets)->data;
  *y = 2 * *x;
  return NULL;
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder of libraries, and no compiler that was found before."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    monkeypatch.setattr(_compiler, "_unanswered", set())
    c_compiler.cache_clear()
    yield tmp_path / "a cache" / "physkit" / "native"
    c_compiler.cache_clear()


def _source():
    """Of a handler that no other test has registered."""
    return f"// {uuid.uuid4()}\n" + _read("threads.h") + HANDLER


def _doubled(name):
    return float(jax.ffi.ffi_call(name, jax.ShapeDtypeStruct((), jnp.float32))(jnp.float32(4)))


def _executable(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def _load_in_vain(message):
    with pytest.warns(PhyskitWarning, match=message):
        assert load_handler(_source(), "handler", False) is None


def test_a_handler_is_compiled_once_and_kept(folder):
    source = _source()
    name = load_handler(source, "handler", False)
    assert _doubled(name) == 8
    assert load_handler(source, "handler", False) == name
    (path,) = folder.iterdir()
    assert path.name.startswith(name)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert isinstance(_library_cache.find_library(name), ctypes.CDLL)


@pytest.mark.parametrize("damage", ["cut off", "other content", "empty"])
def test_a_damaged_library_is_removed(folder, damage):
    name = load_handler(_source(), "handler", False)
    (path,) = folder.iterdir()
    content = path.read_bytes()
    path.unlink()  # it is in use, and must not change
    path.write_bytes(
        {"cut off": content[:-100], "other content": content + b" ", "empty": b""}[damage]
    )
    assert _library_cache.find_library(name) is None
    assert not path.exists()


def test_a_library_that_cannot_be_loaded_is_compiled_again(folder, monkeypatch):
    """As where no file of a home may be run: then from a temporary folder."""
    load, loaded = ctypes.CDLL, []

    def load_elsewhere(path):
        loaded.append(path)
        if str(folder) in path:
            raise OSError("failed to map segment from shared object")
        return load(path)

    monkeypatch.setattr(ctypes, "CDLL", load_elsewhere)
    assert _doubled(load_handler(_source(), "handler", False)) == 8
    assert len(loaded) == 2


@pytest.mark.parametrize("mode", [0o770, 0o707])
@pytest.mark.parametrize("which", ["native", "physkit"])
def test_nothing_is_run_from_a_folder_where_others_can_write(folder, which, mode):
    name = load_handler(_source(), "handler", False)
    unsafe = folder if which == "native" else folder.parent
    unsafe.chmod(mode)
    assert _library_cache.find_library(name) is None
    assert _doubled(load_handler(_source(), "handler", False)) == 8
    assert len(list(folder.iterdir())) == 1
    unsafe.chmod(0o700)
    assert _library_cache.find_library(name) is not None


def test_nothing_is_run_from_the_folder_of_another_user(folder, monkeypatch):
    name = load_handler(_source(), "handler", False)
    assert _library_cache.find_library(name) is not None
    if os.getuid() == 0:
        os.chown(folder, 12345, 12345)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert _library_cache.find_library(name) is None


@pytest.mark.parametrize("home", ["a file", "/proc/nowhere", "full"])
def test_folders_that_cannot_be_written(home, tmp_path, monkeypatch):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / home))
    if home == "full":

        def no_space(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", no_space)
    with warnings.catch_warnings(action="error"):
        assert _doubled(load_handler(_source(), "handler", False)) == 8
    assert not [path for path in (tmp_path / "full").rglob("*") if path.is_file()]


def test_the_oldest_libraries_are_dropped(folder, monkeypatch):
    folder.mkdir(parents=True, mode=0o700)
    folder.parent.chmod(0o700)
    for age in range(1, 6):
        path = folder / f"physkit_{age}-0.so"
        path.write_bytes(b"x" * 1000)
        os.utime(path, (time.time() - 1000 * age,) * 2)
    name = load_handler(_source(), "handler", False)
    (library,) = folder.glob(f"{name}*")
    monkeypatch.setattr(_library_cache, "_MAX_BYTES", 2 * library.stat().st_size + 2500)
    used = folder / "physkit_5-0.so"
    used = used.rename(used.with_name(_library_cache._file_name("physkit_5", used.read_bytes())))
    assert _library_cache.find_library("physkit_5") is None  # it is no library, but was looked for
    load_handler(_source(), "handler", False)
    kept = {path.name for path in folder.iterdir()}
    assert len(kept) == 4
    assert {library.name, used.name, "physkit_1-0.so"} < kept


BROKEN = {
    "silent": ("exit 1", "no library"),
    "garbage": ("printf '\\377\\376 cannot\\n' >&2; exit 3", "cannot"),
    "lazy": ("exit 0", "no library"),
    "no library": ('for a; do [ "$o" = -o ] && echo nonsense > "$a"; o=$a; done', "invalid|short"),
    "asking": ("cat; exit 1", "no library"),
    "hanging": ("exec sleep 60", "timed out"),
    "vanishing": ('rm -f "$0"; exit 1', "No such file"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_compilers(fault, tmp_path, monkeypatch):
    script, message = BROKEN[fault]
    monkeypatch.setenv("CC", _executable(tmp_path / "a compiler", f"#!/bin/sh\n{script}\n"))
    if fault == "hanging":
        monkeypatch.setattr(_compiler, "_COMPILE_SECONDS", 0.3)
    _load_in_vain(message)
    # One that does not answer is not asked again.
    assert native_code_is_used() == (fault != "hanging")


def test_a_library_without_the_handler():
    with pytest.warns(PhyskitWarning, match="other"):
        assert load_handler(_source(), "other", False) is None


def test_code_that_is_not_c_is_reported():
    with pytest.warns(PhyskitWarning, match=r"error: .*PHYSKIT_NATIVE=0"):
        assert load_handler(_source() + "nonsense", "handler", False) is None


def test_the_compiler_of_the_environment(tmp_path, monkeypatch):
    log, (found,) = tmp_path / "log", c_compiler()
    c_compiler.cache_clear()
    wrapper = _executable(tmp_path / "wrapper", f'#!/bin/sh\necho "$1" >> {log}\nexec "$@"\n')
    monkeypatch.setenv("CC", f"{wrapper} {found}")  # as `ccache gcc`
    assert c_compiler() == (wrapper, found)
    assert _doubled(load_handler(_source(), "handler", False)) == 8
    assert log.read_text() == f"{found}\n"
    for chosen in ("", "  ", "there-is-no-such-compiler"):
        c_compiler.cache_clear()
        monkeypatch.setenv("CC", chosen)
        assert c_compiler() == next(
            (path,) for path in map(shutil.which, ("cc", "gcc", "clang")) if path
        )


def test_older_compilers_know_fewer_options(tmp_path, monkeypatch):
    unknown = 'case "$*" in *-march*|*-mcpu*) echo what >&2; exit 1;; esac'
    script = f'{unknown}\nexec {c_compiler()[0]} "$@"'
    c_compiler.cache_clear()
    monkeypatch.setenv("CC", _executable(tmp_path / "old", f"#!/bin/sh\n{script}\n"))
    assert _doubled(load_handler(_source(), "handler", False)) == 8


def _force(x):
    def kernel(a, b, _, present):
        return jnp.where(present, a - b, 0)

    return jax.jit(lambda x: pair_sum(kernel, x, (), AllPairs(), -1))(x)


@pytest.mark.parametrize("reason", ["no compiler", "PHYSKIT_NATIVE", "GPU", "broken"])
def test_without_native_code_sums_are_those_of_jax(reason, tmp_path, monkeypatch):
    if reason == "no compiler":
        monkeypatch.setenv("PATH", str(tmp_path))
    elif reason == "PHYSKIT_NATIVE":
        monkeypatch.setenv("PHYSKIT_NATIVE", "0")
    elif reason == "GPU":
        monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    else:
        monkeypatch.setenv("CC", _executable(tmp_path / "broken", "#!/bin/sh\nexit 1\n"))
    assert native_code_is_used() == (reason == "broken")
    # Of other particles than in any other case: nothing is traced already.
    x = jnp.arange(40.0 + len(reason))
    if reason == "broken":
        with pytest.warns(PhyskitWarning, match="no library"):
            force = _force(x)
    else:
        force = _force(x)
    np.testing.assert_allclose(force, len(x) * x - np.sum(x), atol=1e-9)


def test_programs_for_a_cpu_beside_a_gpu(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with jax.default_device(jax.devices("cpu")[0]):
        assert native_code_is_used()


PROGRAM = """
import sys, warnings
import jax, jax.numpy as jnp
import physkit as pk
from physkit.particles.forces.pairs._pair_sum import pair_sum
from physkit.particles.neighbors import AllPairs

pk.use_compilation_cache(sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))

def kernel(a, b, _, present):
    return jnp.where(present, (a - b) ** 3, 0)

x = jnp.arange(50.0)
force = jax.jit(lambda x: pair_sum(kernel, x, (), AllPairs(), -1))
assert "custom_call @physkit" in force.lower(x).as_text()
print([float(f) for f in force(x)], sum("cache_hits" in event for event in hits) > 0)
"""


def test_a_second_process_finds_the_program_and_its_handler(tmp_path):
    """JAX keeps a program by the handler's name: it must be registered before the program runs."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    outputs = []
    for _ in range(2):
        command = [sys.executable, "-W", "error", "-c", PROGRAM, str(tmp_path / "programs")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        outputs.append(done.stdout.strip().rsplit(" ", 1))
    assert outputs[0][0] == outputs[1][0]
    assert [is_hit for _, is_hit in outputs] == ["False", "True"]
