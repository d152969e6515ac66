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
from typing import Any, TypeAlias

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
    "pandas": "tables: pip install 'physkit[pandas]'",
    "pyarrow": "Parquet files of tables: pip install 'physkit[pandas]'",
    "argcomplete": "Tab completes words: pip install 'physkit[completion]'",
}
_SLOW = {
    "JAX_DISABLE_JIT": "nothing is compiled: runs are a thousand times slower",
    "JAX_DEBUG_NANS": "every result is checked: runs are slower; physkit.diagnose finds NaNs by itself",
    "JAX_DEBUG_INFS": "every result is checked: runs are slower",
    "JAX_LOG_COMPILES": "every compilation is printed",
}
# As /proc/mounts names them.
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs")

Finding: TypeAlias = tuple[str, str, str]  # verdict (ok, note, MEND), subject, message


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `physkit doctor`."""
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def run(args: argparse.Namespace, report: Report) -> int:
    """Print findings line by line; 1 if something must be mended."""
    del args
    findings: list[Finding] = []
    # Printed one by one: compiling takes seconds, and a crash on the way should leave the rest.
    for finding in _all_findings():
        findings.append(finding)
        verdict, subject, message = finding
        if verdict != "ok" or not report.quiet:
            report.result(f"{verdict:4}  {subject:12}  {message}")
    to_mend = sum(verdict == "MEND" for verdict, _, _ in findings)
    notes = sum(verdict == "note" for verdict, _, _ in findings)
    report.result(f"\n{to_mend} to mend, {notes} to know" if to_mend or notes else "\nall is well")
    keys = ("verdict", "what", "is")
    as_dicts = [dict(zip(keys, finding, strict=True)) for finding in findings]
    report.json_result({"healthy": not to_mend, "findings": as_dicts})
    return 1 if to_mend else 0


def _all_findings() -> Iterator[Finding]:
    yield "ok", "physkit", f"{physkit.__version__} in {Path(physkit.__file__).parent}"
    yield (
        "ok",
        "system",
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    )
    yield from _check_packages()
    yield from _check_cores()
    yield from _check_compiler()
    yield from _check_environment()
    yield from _check_jax()
    yield from _check_disk()
    if shutil.which("ffmpeg"):
        yield "ok", "ffmpeg", "there: `physkit animate` writes .mp4"
    else:
        yield "note", "ffmpeg", "not on the PATH: `physkit animate` writes .gif only"
    for name, use in _EXTRAS.items():
        if _version(name) is None:
            yield "note", name, f"not installed; with it, {use}"
        else:
            yield "ok", name, str(_version(name))


def _check_packages() -> Iterator[Finding]:
    """Compare the versions that physkit needs with those installed."""
    from importlib import metadata

    try:
        needed = metadata.requires("physkit") or []
    except metadata.PackageNotFoundError:
        yield "note", "packages", "physkit is not installed, only importable: versions are unknown"
        return
    for line in needed:
        # Markers such as `; extra == "docs"` come after the semicolon: optional packages are skipped.
        requirement = re.match(r"([\w.-]+)\s*>=\s*([\d.]+)\s*$", line.split(";")[0])
        if "extra ==" in line or requirement is None:
            continue
        name, least = requirement.groups()
        installed = _version(name)
        if installed is None:
            yield "MEND", name, f"not installed: pip install '{name}>={least}'"
        elif _version_numbers(installed) < _version_numbers(least):
            yield "MEND", name, f"{installed} is too old: pip install -U '{name}>={least}'"
        else:
            yield "ok", name, installed


def _version(name: str) -> str | None:
    # That of `physkit.parallel` comes with JAX, which may be what is broken.
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _version_numbers(version: str) -> tuple[int, ...]:
    # Three numbers are enough for lower bounds; no need for the `packaging` library.
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def _check_cores() -> Iterator[Finding]:
    from physkit.parallel import usable_cores

    cores, usable = os.cpu_count() or 1, usable_cores()
    if usable < cores:
        yield "note", "cores", f"{usable} of {cores} are given to this process"
    else:
        yield "ok", "cores", f"{cores}"


def _check_compiler() -> Iterator[Finding]:
    from physkit.native import c_compiler, native_code_is_used

    compiler = c_compiler()
    if compiler is None:
        yield (
            "note",
            "C compiler",
            "none found: pairs of particles and flows of gas take two to three times as long on CPUs",
        )
    elif not native_code_is_used():
        yield "note", "C compiler", f"{compiler[0]}, not used on GPUs and with PHYSKIT_NATIVE=0"
    else:
        yield (
            "ok",
            "C compiler",
            f"{compiler[0]} makes pairs of particles and flows of gas native code",
        )


def _check_environment() -> Iterator[Finding]:
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


def _check_jax() -> Iterator[Finding]:
    try:
        import jax
        import jax.numpy as jnp

        devices = jax.devices()
    # Plugins and drivers raise errors of all kinds; the findings that follow are wanted in any case.
    except Exception as error:
        yield "MEND", "jax", f"does not start: {type(error).__name__}: {error}"
        return
    kinds = ", ".join(f"{d.platform}:{d.id} {d.device_kind}" for d in devices)
    on_cpu = jax.default_backend() == "cpu"
    if on_cpu and (Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi")):
        # JAX falls back to the CPU without an error where its GPU plugin is missing.
        yield (
            "MEND",
            "devices",
            f"{kinds}, though there is an NVIDIA GPU: pip install 'physkit[cuda12]', or [cuda13] for "
            "drivers from 580 on",
        )
    else:
        yield "ok", "devices", kinds
    if jnp.zeros(()).dtype == jnp.float64:
        yield "ok", "precision", "float64, as JAX_ENABLE_X64 or your configuration says"
    else:
        yield (
            "note",
            "precision",
            "float32, seven digits; float64 by JAX_ENABLE_X64=1 in scripts, by --double for case files",
        )
    yield from _check_compilation_cache()
    yield from _check_autotuning(devices)
    yield from _check_topology(devices)
    yield from _check_spmd()
    yield from _check_simulation()


def _check_compilation_cache() -> Iterator[Finding]:
    """Whether compiled programs are kept on disk, and how much of it they take."""
    folder = physkit.use_compilation_cache()
    if folder is None:
        # A warning has said why.
        yield (
            "note",
            "compiling",
            "is done anew in every process: name a folder, JAX_COMPILATION_CACHE_DIR",
        )
        return
    size = sum(path.stat().st_size for path in folder.glob("*-cache"))
    yield (
        "ok",
        "compiling",
        f"physkit commands keep compiled programs in {folder} ({format_size(size)}); scripts do after "
        "pk.use_compilation_cache()",
    )


def _check_autotuning(devices: list[Any]) -> Iterator[Finding]:
    """Whether XLA tries several kernels in programs for GPUs that physkit does not compile itself."""
    from physkit.core import gpu_compiler_options

    if all(device.platform != "gpu" for device in devices):
        return
    for name in gpu_compiler_options():
        if name not in os.environ.get("XLA_FLAGS", ""):
            yield (
                "note",
                "autotuning",
                "in programs of your own jax.jit, XLA tries two kernels of each sum, up to half of compiling: "
                f"without by XLA_FLAGS=--{name}=false",
            )


def _check_topology(devices: list[Any]) -> Iterator[Finding]:
    """How many devices a domain can be sharded over, and the job that this process is in."""
    from physkit.core import ClusterError
    from physkit.parallel import detect_process

    try:
        process = detect_process(os.environ)
    except ClusterError as error:
        yield "MEND", "job", str(error)
        return
    # Devices are those of this process; the others are taken to have as many.
    count = len(devices) * (1 if process is None else process.process_count)
    of_all = "" if process is None else f", {len(devices)} of each process"
    if count > 1:
        yield (
            "ok",
            "topology",
            f"domains can be sharded over {count}{of_all}: devices={_device_grids(count)}",
        )
    else:
        yield (
            "note",
            "topology",
            "one device; XLA_FLAGS=--xla_force_host_platform_device_count=4 emulates four on CPU",
        )
    if process is not None:
        yield (
            "ok",
            "job",
            f"process {process.process_index} of {process.process_count} under {process.launcher}, met at "
            f"{process.address}:{process.port}; scripts join by physkit.parallel.initialize()",
        )
    elif "SLURM_JOB_ID" in os.environ:
        yield "note", "job", "in an allocation of Slurm, but not in a step: srun starts processes"


def _check_spmd() -> Iterator[Finding]:
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


def _device_grids(count: int) -> str:
    """Grids of so many devices, as `devices=` takes them."""
    # Blocks that are nearly square have the shortest edges, over which they exchange.
    square = max(k for k in range(1, int(count**0.5) + 1) if count % k == 0)
    return f"({count},)" + (f" or ({count // square}, {square})" if square > 1 else "")


def _check_simulation() -> Iterator[Finding]:
    """Simulate half a turn of a harmonic oscillator, whose end and derivative are known."""
    import jax

    def end_of_half_a_turn(stiffness: jax.Array) -> jax.Array:
        force = physkit.HarmonicTrap(stiffness)
        sim = physkit.Simulation(physkit.VelocityVerlet(force), dt=0.01)
        return physkit.simulate(sim, physkit.Particles([[1.0]]), 314).state.position[0, 0]

    try:
        value, derivative = jax.value_and_grad(end_of_half_a_turn)(1.0)
    except Exception as error:
        yield "MEND", "simulating", f"fails: {type(error).__name__}: {error}"
        return
    # cos(√k t) at t = 3.14, and its derivative −t/2 sin(t).
    good = abs(float(value) + 1.0) < 1e-3 and abs(float(derivative) + 0.0025) < 1e-3
    verdict = "ok" if good else "MEND"
    yield (
        verdict,
        "simulating",
        f"half a turn of a spring ends at {float(value):.5f} (−1), slope {float(derivative):.4f}",
    )


def _check_disk() -> Iterator[Finding]:
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
        # Device, mount point, kind …; the longest mount point above the path is the one it is on.
        entry = line.split()
        if len(entry) > 2 and path.is_relative_to(entry[1]) and len(entry[1]) >= len(best):
            best, kind = entry[1], entry[2]
    return kind
