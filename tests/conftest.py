"""How every test runs: strict numerics, checked annotations, no surprises from the machine.

Set before physkit is imported anywhere:

- double precision on (tests in single precision ask for it by dtype), rank promotion and implicit
  dtype promotion are errors;
- jaxtyping annotations of the whole package are checked by beartype at every call. That costs
  time; `PHYSKIT_TYPECHECK=0` switches it off;
- compiled programs are kept in `.cache/`: workers need not compile what another one has, and the next
  run is two to three times faster. `make clean` removes them;
- programs in memory are dropped whenever a worker has grown by a gibibyte: a suite compiles
  thousands, and JAX keeps every one.
"""

import gc
import os
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import jax
import jax.numpy as jnp
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

cache = Path(__file__).parent.parent / ".cache" / f"jax-{jax.__version__}"
jax.config.update("jax_compilation_cache_dir", str(cache))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

if os.environ.get("PHYSKIT_TYPECHECK", "1") != "0":
    from jaxtyping import install_import_hook

    install_import_hook("physkit", "beartype.beartype")


_GROWTH = 2**30  # bytes
_STATISTICS = Path("/proc/self/statm")


def _resident() -> int:
    """Bytes that this process holds in memory; 0 where the system does not say."""
    if not _STATISTICS.exists():
        return 0
    return int(_STATISTICS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


_held = [_resident()]


@pytest.fixture(autouse=True)
def _forget_old_programs():
    yield
    if _resident() > _held[0] + _GROWTH:
        jax.clear_caches()
        gc.collect()
        _held[0] = _resident()


# Files whose cases compile for seconds each: the fast suite runs every n-th of them, from the first,
# `make test-all` all.
_SAMPLED = {
    "coupling/test_drag.py": 5,
    "coupling/test_particle_mesh.py": 5,
    "coupling/test_transfer.py": 16,
    "ensemble/test_ensemble_mean.py": 2,
    "fit/test_bad_points.py": 3,
    "fit/test_chaos.py": 2,
    "fit/test_shooting.py": 3,
    "observe/test_averages.py": 2,
    "observe/test_correlation.py": 4,
    "observe/test_in_the_loop.py": 4,
    "observe/test_structure.py": 2,
    "particles/test_direct_gravity.py": 2,
    "particles/test_minimize.py": 5,
    "particles/test_neighbors.py": 2,
    "particles/test_pair_sum.py": 4,
    "particles/test_pairwise.py": 10,
    "simulate/test_resume.py": 3,
    "storage/test_output.py": 3,
    "systems/test_flows.py": 4,
    "systems/test_inverse.py": 2,
    "systems/test_liquids.py": 4,
    "systems/test_plasma.py": 2,
    "systems/test_solar.py": 2,
    "systems/test_waves_and_patterns.py": 4,
    "parallel/test_particles.py::test_exact_pair_sums_are_the_same_bits_over_devices": 2,
    "test_docs.py::test_page_runs": 4,
    "test_docs.py::test_example_runs": 10,
    "testing/test_everything.py": 6,
    "validation/test_cases.py": 20,  # `physkit validate --quick` runs them all
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    seen: dict[str, int] = {}
    for item in items:
        fast = getattr(item.module, "FAST_CASES", None)  # where a file names its fast cases itself
        if fast is not None:
            if item.name not in fast and item.originalname not in fast:
                item.add_marker(pytest.mark.slow)
            continue
        name = item.path.relative_to(Path(__file__).parent).as_posix()
        one = f"{name}::{getattr(item, 'originalname', '')}"
        name = one if one in _SAMPLED else name
        every = _SAMPLED.get(name)
        if every is None or item.get_closest_marker("slow"):
            continue
        if seen.setdefault(name, 0) % every:
            item.add_marker(pytest.mark.slow)
        seen[name] += 1


@pytest.fixture(params=[jnp.float32, jnp.float64], ids=["float32", "float64"])
def dtype(request):
    """Both precisions, one after the other."""
    return jnp.dtype(request.param)


@pytest.fixture
def key():
    """A fixed random key, so that a failure repeats."""
    return jax.random.key(0)
