"""Settings of every test: strict numerics, checked annotations, a compilation cache, bounded memory.

Set before physkit is imported anywhere:

- double precision on (tests in single precision ask for it by dtype), rank promotion and implicit
  dtype promotion are errors;
- jaxtyping annotations of the whole package are checked by beartype at every call. That costs
  time; `PHYSKIT_TYPECHECK=0` switches it off, as `make test-all` does;
- programs are compiled with few optimizations, because tests ask what they compute and not how fast:
  that halves the time of a suite. `PHYSKIT_TEST_OPTIMIZED=1` compiles them as users do, and so do
  `make test-all` and the second interpreter of `.ci/run`. What compiles for many minutes is marked
  `compiled_quickly`, and `make test-all` runs it by itself, with few optimizations;
- compiled programs are kept in `.cache/`: workers share them, and the next run is two to three times
  faster. `make clean` removes them;
- programs in memory are dropped whenever a worker has grown large: a suite compiles thousands, and
  JAX keeps every one;
- what has been imported is not searched for garbage again and again;
- programs are lowered in a context that serves fifty of them: to make one takes a third as long as to compile
  a single operation;
- variables of the environment that a test has set are restored after it: processes that later tests start
  would compute other bits;
- signals end what they should also where a shell has started the suite in the background, with
  interrupts ignored.
"""

import contextlib
import ctypes
import gc
import itertools
import os
import signal
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import jax

if os.environ.get("PHYSKIT_TEST_OPTIMIZED", "0") == "0":
    # By the environment, so that the processes that tests start compile to the same bits.
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    jax.config.update("jax_disable_most_optimizations", True)
    # Later XLA does not know the first of these flags, and stops.
    if jax.__version_info__ < (0, 11):
        # The older emitters compile in half the time. They fuse products and sums where programs say that
        # they must be rounded one by one, hence a set of instructions without fused ones.
        # One module of machine code is compiled sooner than many.
        quick = "--xla_cpu_use_fusion_emitters=false --xla_cpu_max_isa=AVX"
        quick += " --xla_cpu_parallel_codegen_split_count=1"
        flags = os.environ.get("XLA_FLAGS", "").replace(quick, "")
        os.environ["XLA_FLAGS"] = f"{flags} {quick}".strip()

import jax.numpy as jnp
import pytest

# What is ignored here is ignored by the processes that tests start, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

cache = Path(__file__).parent.parent / ".cache" / f"jax-{jax.__version__}"
jax.config.update("jax_compilation_cache_dir", str(cache))
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(cache)  # for the processes that tests start
# Small programs, too: a suite compiles thousands of them.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

if os.environ.get("PHYSKIT_TYPECHECK", "1") != "0":
    # Before the first import of physkit, whose modules the hook rewrites as they are imported.
    from tests.annotations import install

    install()


def _share_lowering_contexts() -> None:
    """Make a new MLIR context for every fiftieth program only: what a context has seen stays in memory."""
    make, lowered, context = mlir.make_ir_context, itertools.count(), None

    def shared_context():
        nonlocal context
        if mlir.ir.Context.current is not None:
            return make()  # for one program inside of another, whose operations would go into that
        if next(lowered) % 50 == 0:
            context = make()
        return context

    mlir.make_ir_context = shared_context


with contextlib.suppress(ImportError, AttributeError):  # JAX may keep it elsewhere one day
    from jax._src.interpreters import mlir

    _share_lowering_contexts()


_LARGE, _GROWTH = 5 * 2**28, 2**28  # bytes: of a worker, and since programs were last dropped
_STATISTICS = Path("/proc/self/statm")


def _resident() -> int:
    """Bytes that this process holds in memory; 0 where the system does not say."""
    if not _STATISTICS.exists():
        return 0
    return int(_STATISTICS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


_resident_after_drop = [_resident()]


@pytest.fixture(autouse=True)
def _drop_old_programs():
    yield
    if _resident() > max(_LARGE, _resident_after_drop[0] + _GROWTH):
        jax.clear_caches()
        gc.collect()
        # The allocator keeps what is free in pieces; glibc gives it back when asked to.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        _resident_after_drop[0] = _resident()


@pytest.fixture(autouse=True)
def _restore_environment():
    """A command that runs in this process, such as one with `--devices`, sets variables for what it starts."""
    before = dict(os.environ)
    yield
    # pytest's own changes while a test runs.
    for name in {*before, *os.environ} - {"PYTEST_CURRENT_TEST"}:
        if name not in before:
            del os.environ[name]
        elif os.environ.get(name) != before[name]:
            os.environ[name] = before[name]


def pytest_collection_finish():
    # A million objects that stay: searching them takes seconds each time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Files whose cases compile for seconds each name the fast ones in FAST_CASES; the others are slow.

    An entry is a case, `test_x[id]`, or a test with all its cases.

    **Errors:** `pytest.UsageError` for an entry that names no fast case: it would test nothing.
    """
    unnamed = {}
    for item in items:
        fast = getattr(item.module, "FAST_CASES", None)
        if fast is None:
            continue
        entries = unnamed.setdefault(item.module, set(fast))
        if item.name not in fast and item.originalname not in fast:
            item.add_marker(pytest.mark.slow)
        elif item.get_closest_marker("slow") is None:
            entries -= {item.name, item.originalname}
    # Of a file of which some cases are asked for, the others are not there.
    if not any("::" in argument for argument in config.args):
        stale = {module.__name__: sorted(names) for module, names in unnamed.items() if names}
        if stale:
            raise pytest.UsageError(f"FAST_CASES name what is no fast case: {stale}")


@pytest.fixture(params=[jnp.float32, jnp.float64], ids=["float32", "float64"])
def dtype(request):
    """Both precisions, one after the other."""
    return jnp.dtype(request.param)


@pytest.fixture
def key():
    """A fixed random key, so that a failure repeats."""
    return jax.random.key(0)
