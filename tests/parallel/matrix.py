r"""Every field system on every grid of devices by every backend, against one device: a table.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 NPROC=16 JAX_ENABLE_X64=1 \
        python -m tests.parallel.matrix [results.jsonl] [backends] [systems] [gradient] [grids]

A line of JSON per case, so that a test can look at what is there. Cases that the file has already are
not run again.
"""

import json
import os
import sys
import time
from pathlib import Path

from tests.parallel import fields


def rows(path: Path, backends: list[str], names: list[str], forward: bool, only: str = ""):
    """Runs what is not in the file yet, and appends it."""
    done = set()
    if path.exists():
        done = {tuple(json.loads(line)["case"]) for line in path.read_text().splitlines()}
    kind = "state" if forward else "gradient"
    for name in names:
        case, grids = fields.SYSTEMS[name]
        grids = sorted(grids, key=lambda g: -max(g)) if forward else fields.OF_GRADIENTS[len(grids)]
        grids = [g for g in grids if not only or str(g).replace(" ", "") in only]
        todo = [(g, b) for b in backends for g in grids if (kind, name, b, str(g)) not in done]
        if not todo:
            continue
        one = fields.on_one(case) if forward else fields.gradient(case, None)
        for devices, backend in todo:
            os.environ["PHYSKIT_SPMD"] = backend
            begin = time.time()
            if forward:
                other = fields.over(case, devices)
                far = [fields.distance(a, b) for a, b in zip(one, other, strict=True)]
            else:
                far = [fields.distance(one, fields.gradient(case, devices))]
            row = {"case": (kind, name, backend, str(devices)), "far": far}
            row["seconds"] = round(time.time() - begin, 1)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    given = [*sys.argv[1:], "", "", "", "", ""]
    rows(
        Path(given[0] or "matrix.jsonl"),
        (given[1] or "pmap,shard_map").split(","),
        given[2].split(",") if given[2] else list(fields.SYSTEMS),
        given[3] != "gradient",
        given[4],
    )
