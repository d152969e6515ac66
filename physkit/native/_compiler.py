"""The system's C compiler: code to a loaded library, compiled once for each kind of processor."""

import contextlib
import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import jax

from physkit.core import PyTree, warn

from ._library_cache import find_library, keep_library

# No option may let the compiler treat sums as associative or NaN as impossible; `omp simd` names the sums that
# it may reorder. Integers wrap around, as JAX's do.
_OPTIONS = (
    "-std=gnu11", "-O3", "-fPIC", "-shared", "-fopenmp-simd", "-fno-math-errno", "-fwrapv", "-w",
)  # fmt: skip
_OPTIONS_FOR_SPEED = (  # the first that the compiler knows
    ("-march=native", "-mprefer-vector-width=512", "-fno-trapping-math"),
    ("-mcpu=native",),
    (),
)
# Of long code more takes twice as long to compile, and gains nothing.
_OPTIONS_FOR_LONG_CODE = ("-O2", "-ftree-vectorize")
_LONG = 1000  # lines
_COMPILE_SECONDS = 60

_lock = threading.Lock()  # two threads must not register one handler
_unanswered: set[tuple[str, ...]] = set()  # compilers that took too long, and are not asked again


def native_code_is_used() -> bool:
    """Whether loops over pairs and faces are native code on CPUs.

    They are where programs run on a CPU, there is a C compiler, and PHYSKIT_NATIVE is neither 0 nor cuda. It
    must be 0 for programs that `jax.export` writes for other processes, which have no such code, or for other
    platforms.
    """
    if os.environ.get("PHYSKIT_NATIVE", "1") in ("0", "cuda") or os.name != "posix":
        return False
    compiler = c_compiler()
    return compiler is not None and compiler not in _unanswered and _default_platform() == "cpu"


def kernels_are_used() -> bool:
    """Whether sums over pairs and functions at faces are kernels of their own on NVIDIA's GPUs.

    They are where there is one, unless PHYSKIT_NATIVE is 0; and where it is cuda: in programs that are lowered
    for such GPUs on a machine without any. It must be 0 for programs for several platforms in one: JAX lowers
    what is chosen for one platform for all of them, and no other has such kernels.
    """
    chosen = os.environ.get("PHYSKIT_NATIVE", "1")
    return chosen == "cuda" or (chosen != "0" and not _has_cpus_only())


def native_or_xla(
    native: Callable[..., PyTree],
    by_xla: Callable[..., PyTree],
    *arrays: PyTree,
    cuda: Callable[..., PyTree] | None = None,
) -> PyTree:
    """`native(*arrays)` on CPUs where native code is used, `cuda(*arrays)` on NVIDIA's GPUs, `by_xla(*arrays)`
    elsewhere.

    A process that has CPUs only does not trace the others: that would take a third of a start whose programs
    come from a cache. So programs that it lowers for other platforms need PHYSKIT_NATIVE=0 or cuda, too.
    """
    variants = {"cpu": native} if native_code_is_used() else {}
    if cuda is not None and kernels_are_used():
        variants["cuda"] = cuda
    if not variants:
        return by_xla(*arrays)
    if _has_cpus_only() and "cuda" not in variants:
        return native(*arrays)
    return jax.lax.platform_dependent(*arrays, default=by_xla, **variants)


@functools.cache
def _has_cpus_only() -> bool:
    for kind in ("gpu", "tpu"):
        with contextlib.suppress(RuntimeError):
            return not jax.devices(kind)
    return True


def _default_platform() -> str:
    device = jax.config.jax_default_device
    return getattr(device, "platform", device) or jax.default_backend()


@functools.cache
def c_compiler() -> tuple[str, ...] | None:
    """The C compiler's path and first arguments; None without one.

    It is the environment's CC, which may have arguments, or `cc`, `gcc` or `clang`.
    """
    chosen = os.environ.get("CC", "")
    for words in ((chosen,), chosen.split(), ("cc",), ("gcc",), ("clang",)):
        path = shutil.which(words[0]) if words else None
        if path:
            return path, *words[1:]
    return None


def load_handler(source: str, entry: str, exact: bool) -> str | None:
    """Compile C code, unless it was before, and make `entry` a handler that `jax.ffi.ffi_call` knows.

    - `exact`: products and sums are rounded one by one, not fused.

    **Returns:** the handler's name; None, with a warning, where it cannot be compiled or loaded.
    """
    with _lock:
        return _load_handler(source, entry, exact)


@functools.cache
def _load_handler(source: str, entry: str, exact: bool) -> str | None:
    compiler = c_compiler()
    assert compiler is not None  # `native_code_is_used` was asked
    options = (*_OPTIONS, *(("-ffp-contract=off",) if exact else ()), f"-I{jax.ffi.include_dir()}")
    if source.count("\n") > _LONG:
        options = (*options, *_OPTIONS_FOR_LONG_CODE)
    versions = jax.__version__, jax.lib.__version__
    key = "\0".join((source, *options, *compiler, *versions, _processor()))
    name = f"physkit_{hashlib.sha256(key.encode()).hexdigest()[:24]}"
    try:
        library = find_library(name) or _compile(compiler, options, source, name)
        handler = jax.ffi.pycapsule(getattr(library, entry))
        jax.ffi.register_ffi_target(name, handler, platform="cpu")
    except (AttributeError, OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        if isinstance(error, subprocess.TimeoutExpired):
            _unanswered.add(compiler)
        warn(
            f"no native code for sums over pairs, lists or fluxes, which will be slower ({error}); "
            "PHYSKIT_NATIVE=0 in the environment does without it"
        )
        return None
    return name


def _compile(
    compiler: tuple[str, ...], options: tuple[str, ...], source: str, name: str
) -> ctypes.CDLL:
    """**Errors:** `RuntimeError` with what the compiler says."""
    message = "it made no library"
    with tempfile.TemporaryDirectory(prefix="physkit-") as scratch:
        code, path = Path(scratch) / "code.c", Path(scratch) / "code.so"
        code.write_text(source)
        for more in _OPTIONS_FOR_SPEED:
            done = subprocess.run(
                [*compiler, *options, *more, str(code), "-o", str(path), "-lm"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_COMPILE_SECONDS,
                check=False,
            )
            if done.returncode == 0 and path.exists():
                kept = keep_library(path, name)
                if kept is not None:
                    # Else, as where no file of a home may be run, from here.
                    with contextlib.suppress(OSError):
                        return ctypes.CDLL(str(kept))
                return ctypes.CDLL(str(path))
            message = done.stderr.decode(errors="replace").strip() or message
    raise RuntimeError(f"{' '.join(compiler)}: {message.splitlines()[0]}")


@functools.cache
def _processor() -> str:
    """What names the instructions that this processor has: machines of different kinds may share a home."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        # On a Mac the version of the system names the processor.
        return f"{platform.machine()} {platform.processor()} {platform.version()}"
    kinds = {
        line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))
    }
    return f"{platform.machine()} {sorted(kinds)}"
