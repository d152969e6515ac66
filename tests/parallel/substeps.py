r"""`check_devices` of systems with sub-steps over emulated devices; the names of those that pass, as JSON.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 NPROC=16 JAX_ENABLE_X64=1 \
        python -m tests.parallel.substeps backend systems

(Their loop cannot be differentiated under `vmap`: JAX traces custom derivative rules when the name of the
mapped axis is gone.)
"""

import json
import sys

from physkit.testing import check_devices
from tests.parallel import field_cases


def main(backend: str, names: list[str]) -> None:
    """Check one after the other; the first that fails ends it."""
    for name in names:
        case, grids = field_cases.SYSTEMS[name]
        sim, state, steps = case()
        devices = field_cases.GRADIENT_GRIDS[len(grids)]
        check_devices(sim, state, steps, devices=devices, backend=backend)
    print(json.dumps(names))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2].split(","))
