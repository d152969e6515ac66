"""Compiled programs kept on disk, so that the next process need not compile them again."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import filelock
import jax
from jax.experimental.compilation_cache import compilation_cache

from physkit.core import Count, ParameterError, as_count, warn

# Shorter compilations are not worth a file: JAX looks through all of them whenever it writes one.
_MIN_COMPILE_SECONDS = 0.05
_LOCK_SECONDS = 1.0
_LONG_COMPILATION = 10.0  # seconds


def use_compilation_cache(
    folder: str | Path | None = None, *, max_bytes: Count = 2**28
) -> Path | None:
    """Keep compiled programs in a folder: the next process that needs them reads them.

    Call it once, before the first simulation; `physkit …` commands do. Processes that this one starts keep
    theirs there, too. Code, shapes, precision, JAX's version and the kind of processor are part of a program's
    name; each number of cores that a process may use has a folder of its own in it, as XLA divides the work
    when it compiles. So nothing needs to be cleared after a change, and machines may share a home.

    **Arguments:**

    - `folder`: where; if left out, what JAX has been told already (JAX_COMPILATION_CACHE_DIR), with its
      settings as they are, or else `~/.cache/physkit` (`$XDG_CACHE_HOME/physkit`). JAX runs what it finds
      there: let nobody write there whom you would not let run code.
    - `max_bytes`: of each number of cores; beyond that, programs are removed that have not been used for
      longest.

    **Returns:** the folder of this number of cores; None, with a warning, where nothing can be written, as on
    a read-only home: programs are then compiled in every process.

    **Notes:** processes may share the folder: each reads and writes under a lock. What a kill or a full disk
    has cut off is removed by the next call. On a full disk JAX warns, and the run goes on.

    A process that runs a program over several CPU devices keeps and reads none from then on: XLA loses
    the order of collectives in what it reads, see `stop_caching_on_cpus`. Those on GPUs are kept.
    """
    chosen = jax.config.jax_compilation_cache_dir
    if folder is None and chosen:
        return Path(chosen)
    try:
        shared = cache_folder() if folder is None else Path(folder).expanduser().absolute()
        shared.mkdir(parents=True, exist_ok=True, mode=0o700)
        # XLA names no number of cores: a program that was compiled on one would run on one.
        path = shared / f"cores-{usable_cores()}"
        _make_writable(path)
        _remove_incomplete(path)
    except (OSError, RuntimeError) as error:  # RuntimeError: a user without a home
        warn(
            f"compiled programs are not kept ({error}): name a folder that can be written, "
            "pk.use_compilation_cache(folder), or set JAX_COMPILATION_CACHE_DIR"
        )
        return None
    settings = {
        "jax_compilation_cache_dir": str(path),
        # With a bound JAX takes a lock around each read and write; without one it takes none.
        "jax_compilation_cache_max_size": as_count(max_bytes, "max_bytes", ParameterError),
        "jax_persistent_cache_min_compile_time_secs": _MIN_COMPILE_SECONDS,
    }
    for name, value in settings.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)
    compilation_cache.reset_cache()  # JAX may have opened another folder already
    return path


def stop_caching_on_cpus(devices: Sequence[jax.Device]) -> None:
    """Keep and read no more compiled programs in this process if these are several CPU devices.

    XLA runs the operations of a CPU program side by side where none waits for another, and keeps collectives in
    order by a resource that they share. What it reads has another one in each loop, branch and call: two
    reductions may then meet in one, and the process dies (JAX 0.10 to 0.12, seen with `CFLSubsteps`). Outer
    programs that this one is traced into, as of a gradient, are compiled later, hence for the whole process.
    """
    on_cpus = len(devices) > 1 and any(device.platform == "cpu" for device in devices)
    if on_cpus and jax.config.jax_enable_compilation_cache:
        jax.config.update("jax_enable_compilation_cache", False)
        compilation_cache.reset_cache()  # JAX asks for the setting once


def note_on_compiling(seconds: float) -> str | None:
    """What to tell the user of a run that compiled for so long; None if that was short, or is kept already."""
    if seconds < _LONG_COMPILATION or jax.config.jax_compilation_cache_dir:
        return None
    return (
        f"compiling took {seconds:.0f} s; with pk.use_compilation_cache() at the top of the script the next "
        "start reads it from disk"
    )


def cache_folder() -> Path:
    """`~/.cache/physkit`, or what `$XDG_CACHE_HOME` says; `RuntimeError` for a user without a home."""
    caches = os.environ.get("XDG_CACHE_HOME")
    # An empty variable, or a relative path in it, is to be ignored, says the standard.
    if caches and Path(caches).is_absolute():
        return Path(caches) / "physkit"
    return Path.home() / ".cache" / "physkit"


def usable_cores() -> int:
    """How many cores this process may use: schedulers and containers give it some of them."""
    # macOS does not tell.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _make_writable(path: Path) -> None:
    """**Errors:** `OSError` where no file can be written there."""
    path.mkdir(exist_ok=True, mode=0o700)
    with tempfile.TemporaryFile(dir=path) as file:
        file.write(b"x")


def _remove_incomplete(path: Path) -> None:
    """Remove programs whose writing was cut off: JAX would find them unreadable in every process.

    JAX writes the time of use of a program after the program itself.
    """
    try:
        lock = filelock.FileLock(path / ".lockfile").acquire(timeout=_LOCK_SECONDS)  # JAX's own
    except filelock.Timeout:
        return  # another process is at work there
    with lock:
        for program in path.glob("*-cache"):
            time_of_use = program.with_name(program.name.removesuffix("-cache") + "-atime")
            if not time_of_use.exists():
                program.unlink()
