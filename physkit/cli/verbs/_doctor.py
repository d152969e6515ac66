"""Examine this installation: devices, versions, common traps.

Exit status 1 where something has to be mended.
"""

import argparse
import os
import platform
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import physkit

from ..common._report import Report, format_size

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit doctor
  physkit doctor --json
"""
_EXTRAS = {
    "xarray": "labeled arrays: pip install 'physkit[xarray]'",
    "h5netcdf": "xarray opens fields: pip install 'physkit[xarray]'",
    "argcomplete": "Tab completes words: pip install 'physkit[completion]'",
}
_SLOW = {
    "JAX_DISABLE_JIT": "nothing is compiled: runs are a thousand times slower",
    "JAX_DEBUG_NANS": "every result is looked at: runs are slower; physkit.diagnose finds NaNs by itself",
    "JAX_DEBUG_INFS": "every result is looked at: runs are slower",
    "JAX_LOG_COMPILES": "every compilation is printed",
}
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs")

Finding = tuple[str, str, str]  # verdict (ok, note, MEND), what, what is so


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `physkit doctor`."""
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def run(args: argparse.Namespace, report: Report) -> int:
    """Print findings line by line; 1 if something must be mended."""
    del args
    found: list[Finding] = []
    for verdict, what, said in _examined():
        found.append((verdict, what, said))
        if verdict != "ok" or not report.quiet:
            report.result(f"{verdict:4}  {what:12}  {said}")
    ill = sum(verdict == "MEND" for verdict, _, _ in found)
    notes = sum(verdict == "note" for verdict, _, _ in found)
    report.result(f"\n{ill} to mend, {notes} to know" if ill or notes else "\nall is well")
    keys = ("verdict", "what", "is")
    report.answer(
        {"healthy": not ill, "findings": [dict(zip(keys, one, strict=True)) for one in found]}
    )
    return 1 if ill else 0


def _examined() -> Iterator[Finding]:
    yield "ok", "physkit", f"{physkit.__version__} in {Path(physkit.__file__).parent}"
    yield (
        "ok",
        "system",
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    )
    yield from _packages()
    yield from _cores()
    yield from _environment()
    yield from _jax()
    yield from _disk()
    if shutil.which("ffmpeg"):
        yield "ok", "ffmpeg", "there: `physkit animate` writes .mp4"
    else:
        yield "note", "ffmpeg", "not on the PATH: `physkit animate` writes .gif only"
    for name, use in _EXTRAS.items():
        if _version(name) is None:
            yield "note", name, f"not installed; with it, {use}"
        else:
            yield "ok", name, str(_version(name))


def _packages() -> Iterator[Finding]:
    """What physkit needs, against what there is."""
    from importlib import metadata

    try:
        needed = metadata.requires("physkit") or []
    except metadata.PackageNotFoundError:
        yield "note", "packages", "physkit is not installed, only importable: versions are unknown"
        return
    for line in needed:
        words = re.match(r"([\w.-]+)\s*>=\s*([\d.]+)\s*$", line.split(";")[0])
        if "extra ==" in line or words is None:
            continue
        name, least = words.groups()
        have = _version(name)
        if have is None:
            yield "MEND", name, f"not installed: pip install '{name}>={least}'"
        elif _numbers(have) < _numbers(least):
            yield "MEND", name, f"{have} is too old: pip install -U '{name}>={least}'"
        else:
            yield "ok", name, have


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def _cores() -> Iterator[Finding]:
    there = os.cpu_count() or 1
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    if ours < there:
        yield "note", "cores", f"{ours} of {there} are given to this process"
    else:
        yield "ok", "cores", f"{there}"


def _environment() -> Iterator[Finding]:
    for name, meaning in _SLOW.items():
        if os.environ.get(name, "").lower() not in ("", "0", "false"):
            yield "MEND", name, f"is set: {meaning}. unset {name}"
    flags = os.environ.get("XLA_FLAGS", "")
    if "host_platform_device_count" in flags:
        yield "note", "XLA_FLAGS", "emulates several devices on one machine, which is slow"
    if os.environ.get("JAX_PLATFORMS"):
        yield (
            "note",
            "JAX_PLATFORMS",
            f"is {os.environ['JAX_PLATFORMS']!r}: other devices are not used",
        )
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        yield (
            "note",
            "compiling",
            "is done anew in every process; export JAX_COMPILATION_CACHE_DIR=~/.cache/jax keeps it",
        )


def _jax() -> Iterator[Finding]:
    try:
        import jax
        import jax.numpy as jnp

        devices = jax.devices()
    except Exception as error:
        yield "MEND", "jax", f"does not start: {type(error).__name__}: {error}"
        return
    kinds = ", ".join(f"{d.platform}:{d.id} {d.device_kind}" for d in devices)
    on_cpu = jax.default_backend() == "cpu"
    if on_cpu and (Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi")):
        yield (
            "MEND",
            "devices",
            f"{kinds}, though there is an NVIDIA GPU: pip install 'physkit[cuda]'",
        )
    else:
        yield "ok", "devices", kinds
    if jnp.zeros(()).dtype == jnp.float64:
        yield "ok", "precision", "float64, as JAX_ENABLE_X64 or your configuration says"
    else:
        yield (
            "note",
            "precision",
            "float32, seven digits; JAX_ENABLE_X64=1 or --double calculates in float64",
        )
    yield from _topology(devices)
    yield from _spmd()
    yield from _a_simulation()


def _topology(devices: list) -> Iterator[Finding]:
    """How many devices a domain can be cut over, and the job that this process is in."""
    from physkit.core import ClusterError
    from physkit.parallel import detect_process

    try:
        place = detect_process(os.environ)
    except ClusterError as error:
        yield "MEND", "job", str(error)
        return
    most = len(devices) * (1 if place is None else place.process_count)
    of_all = "" if place is None else f", {len(devices)} of each process"
    if most > 1:
        yield "ok", "topology", f"domains can be cut over {most}{of_all}: devices={_grids(most)}"
    else:
        yield (
            "note",
            "topology",
            "one device; XLA_FLAGS=--xla_force_host_platform_device_count=4 emulates four on CPU",
        )
    if place is not None:
        yield (
            "ok",
            "job",
            f"process {place.process_index} of {place.process_count} under {place.launcher}, met at "
            f"{place.address}:{place.port}; scripts join by physkit.parallel.initialize()",
        )
    elif "SLURM_JOB_ID" in os.environ:
        yield "note", "job", "in an allocation of Slurm, but not in a step: srun starts processes"


def _spmd() -> Iterator[Finding]:
    """Which backend reaches the devices, where the environment chooses one."""
    from physkit.core import DeviceError
    from physkit.parallel import BACKEND_VARIABLE, choose_backend

    if not os.environ.get(BACKEND_VARIABLE):
        return
    try:
        chosen = choose_backend(None, 1)
    except DeviceError as error:
        yield "MEND", BACKEND_VARIABLE, str(error)
        return
    meaning = {"vmap": "all devices are emulated by one", "serial": "there is one device"}
    yield (
        "note",
        BACKEND_VARIABLE,
        f"is {chosen!r}: {meaning.get(chosen, 'how devices are reached')}",
    )


def _grids(most: int) -> str:
    """Grids of so many devices, as `devices=` takes them."""
    square = max(k for k in range(1, int(most**0.5) + 1) if most % k == 0)
    return f"({most},)" + (f" or ({most // square}, {square})" if square > 1 else "")


def _a_simulation() -> Iterator[Finding]:
    """One turn of a harmonic oscillator, whose end and derivative are known."""
    import jax

    def end(stiffness):
        force = physkit.HarmonicTrap(stiffness)
        sim = physkit.Simulation(physkit.VelocityVerlet(force), dt=0.01)
        return physkit.simulate(sim, physkit.Particles([[1.0]]), 314).state.position[0, 0]

    try:
        value, slope = jax.value_and_grad(end)(1.0)
    except Exception as error:
        yield "MEND", "simulating", f"fails: {type(error).__name__}: {error}"
        return
    # cos(√k t) at t = 3.14, and its derivative −t/2 sin(t).
    good = abs(float(value) + 1.0) < 1e-3 and abs(float(slope) + 0.0025) < 1e-3
    verdict = "ok" if good else "MEND"
    yield (
        verdict,
        "simulating",
        f"half a turn of a spring ends at {float(value):.5f} (−1), slope {float(slope):.4f}",
    )


def _disk() -> Iterator[Finding]:
    free = shutil.disk_usage(".").free
    yield ("note" if free < 2**30 else "ok"), "disk", f"{format_size(free)} free here"
    kind = _file_system(Path.cwd())
    if kind in _NETWORK:
        yield (
            "note",
            "file system",
            f"{kind}: frames are written safely, but locks hold on one machine only",
        )


def _file_system(path: Path) -> str:
    """The kind of the file system that `path` is on; nothing where the system does not say."""
    best, kind = "", ""
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        words = line.split()
        if len(words) > 2 and path.is_relative_to(words[1]) and len(words[1]) >= len(best):
            best, kind = words[1], words[2]
    return kind
