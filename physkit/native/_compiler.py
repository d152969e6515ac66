"""The system's C compiler: code to a loaded library, compiled once for each kind of processor."""

import atexit
import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path

import jax

from physkit.core import PhyskitWarning
from physkit.parallel import cache_folder

# No option may let the compiler treat sums as associative or NaN as impossible; `omp simd` names the sums that
# it may reorder.
_OPTIONS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fopenmp-simd", "-fno-math-errno", "-w")
_OPTIONS_FOR_SPEED = (  # the first that the compiler knows
    ("-march=native", "-mprefer-vector-width=512", "-fno-trapping-math"),
    ("-mcpu=native",),
    (),
)
_COMPILE_SECONDS = 60


def native_code_is_used() -> bool:
    """Whether sums over pairs are native code: there is a C compiler, and PHYSKIT_NATIVE is not 0."""
    return os.environ.get("PHYSKIT_NATIVE", "1") != "0" and c_compiler() is not None


@functools.cache
def c_compiler() -> str | None:
    """The path of the C compiler: that of the environment's CC, or `cc`, `gcc` or `clang`; None without one."""
    names = (os.environ.get("CC", "cc"), "gcc", "clang")
    return next((path for path in map(shutil.which, names) if path), None)


@functools.cache
def load_handler(source: str, entry: str, exact: bool) -> str | None:
    """Compile C code, unless it was before, and make `entry` a handler that `jax.ffi.ffi_call` knows.

    - `exact`: products and sums are rounded one by one, not fused.

    **Returns:** the handler's name; None, with a warning, where it cannot be compiled or loaded.
    """
    compiler = c_compiler()
    assert compiler is not None  # `native_code_is_used` was asked
    options = (*_OPTIONS, *(("-ffp-contract=off",) if exact else ()), f"-I{jax.ffi.include_dir()}")
    key = "\0".join((source, *options, compiler, jax.__version__, _processor()))
    name = f"physkit_{hashlib.sha256(key.encode()).hexdigest()[:24]}"
    try:
        path = _native_folder() / f"{name}.so"
        if not path.exists():
            _compile(compiler, options, source, path)
        library = ctypes.CDLL(str(path))
        jax.ffi.register_ffi_target(
            name, jax.ffi.pycapsule(getattr(library, entry)), platform="cpu"
        )
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        warnings.warn(
            f"no native code for a sum over pairs, which will be slower ({error}); PHYSKIT_NATIVE=0 in the "
            "environment does without it",
            PhyskitWarning,
            stacklevel=2,
        )
        return None
    return name


def _compile(compiler: str, options: tuple[str, ...], source: str, path: Path) -> None:
    """**Errors:** `RuntimeError` with what the compiler says."""
    message = ""
    # Other processes may compile the same: each writes a file of its own, and the last one counts.
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        code, library = Path(scratch) / "code.c", Path(scratch) / "code.so"
        code.write_text(source)
        for more in _OPTIONS_FOR_SPEED:
            command = [compiler, *options, *more, str(code), "-o", str(library), "-lm"]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_COMPILE_SECONDS, check=False
            )
            if done.returncode == 0:
                os.replace(library, path)
                return
            message = message or done.stderr.strip().splitlines()[0]
    raise RuntimeError(f"{compiler}: {message}")


@functools.cache
def _native_folder() -> Path:
    """Where compiled code is kept: only the user may write there, whose processes run what is in it."""
    try:
        folder = cache_folder() / "native"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
        if (
            status.st_uid == os.getuid()
            and not status.st_mode & 0o022
            and os.access(folder, os.W_OK)
        ):
            return folder
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        pass
    folder = Path(tempfile.mkdtemp(prefix="physkit-native-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _processor() -> str:
    """What names the instructions that this processor has: machines of different kinds may share a home."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    kinds = {
        line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))
    }
    return f"{platform.machine()} {sorted(kinds)}"
