"""The command: examine draws by number."""

import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax

jax.config.update("jax_enable_x64", True)

from tests.hunt.draws import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
