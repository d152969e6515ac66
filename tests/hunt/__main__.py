"""The command: examine draws by number."""

import os
import sys
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

jax.config.update("jax_enable_x64", True)
# The tests' own: draws of a block, and the same draws later, share their programs.
cache = Path(__file__).parents[2] / ".cache" / f"jax-{jax.__version__}"
jax.config.update("jax_compilation_cache_dir", str(cache))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

from tests.hunt.draws import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
