r"""Every system on every grid of devices by every backend, against one device: a table.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 NPROC=16 JAX_ENABLE_X64=1 \
        python -m tests.parallel.matrix [results.jsonl] [backends] [systems] [gradient] [grids]
    python -m tests.parallel.matrix results.jsonl table

A line of JSON per case, so that a test can look at what is there. Cases that the file has already are
not run again. `table` prints what `docs/devices.md` shows.
"""

import functools
import json
import os
import sys
import time
from pathlib import Path

import jax

from tests.parallel import field_cases, particle_cases

SLABS = [(1,), (2,), (4,)]
SYSTEMS = list(field_cases.SYSTEMS) + list(particle_cases.SYSTEMS)


def rows(path: Path, backends: list[str], names: list[str], forward: bool, only: str = ""):
    """Runs what is not in the file yet, and appends it."""
    done = {tuple(case) for case in results(path)} if path.exists() else set()
    kind = "state" if forward else "gradient"
    for name in names:
        for backend in backends:
            for devices in _grids(name, forward):
                case = (kind, name, backend, str(devices))
                if case in done or (only and str(devices).replace(" ", "") not in only):
                    continue
                one = _one(name, forward)
                os.environ["PHYSKIT_SPMD"] = backend
                begin = time.time()
                far = _far(name, devices, one, forward)
                row = {"case": case, "far": far, "seconds": round(time.time() - begin, 1)}
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def _grids(name: str, forward: bool) -> list[tuple[int, ...]]:
    """Grids of devices for a system, the largest first."""
    if name in particle_cases.SYSTEMS:
        return sorted(SLABS, reverse=True) if forward else [(2,)]
    grids = field_cases.SYSTEMS[name][1]
    return sorted(grids, key=lambda g: -max(g)) if forward else field_cases.OF_GRADIENTS[len(grids)]


@functools.lru_cache(maxsize=1)
def _one(name: str, forward: bool):
    """What one device finds."""
    if name in particle_cases.SYSTEMS:
        return particle_cases.ran(name, None) if forward else particle_cases.slopes(name, None)
    case, _ = field_cases.SYSTEMS[name]
    return field_cases.on_one(case) if forward else field_cases.gradient(case, None)


def _far(name: str, devices: tuple[int, ...], one, forward: bool) -> list[float]:
    """How far several devices are from it."""
    if name in particle_cases.SYSTEMS:
        if forward:
            return list(particle_cases.differences(name, devices, one=one).values())
        pairs = zip(jax.tree.leaves(particle_cases.slopes(name, devices)), jax.tree.leaves(one))
        return [field_cases.distance(b, a) for a, b in pairs]
    case, _ = field_cases.SYSTEMS[name]
    if not forward:
        return [field_cases.distance(one, field_cases.gradient(case, devices))]
    return [
        field_cases.distance(a, b)
        for a, b in zip(one, field_cases.over(case, devices), strict=True)
    ]


def results(path: Path) -> dict[tuple[str, ...], float]:
    """The largest difference of every case in a file."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {tuple(line["case"]): max(line["far"]) for line in lines}


def table(path: Path) -> str:
    """What is in a file, as a page shows it: a row per system, a column per grid of devices.

    Where the backends differ, first `pmap`, then `shard_map`. Columns that nothing is in are left out.
    """
    found = results(path)
    groups: dict[tuple, list[str]] = {}
    for name in dict.fromkeys(case[1] for case in found):
        columns = [("state", g) for g in sorted(_grids(name, True))]
        columns += [("gradient", g) for g in _grids(name, False)]
        groups.setdefault(tuple(columns), []).append(name)
    pages = []
    for columns, names in groups.items():
        cells = {c: [_cell(found, c[0], n, str(c[1])) for n in names] for c in columns}
        shown = {c: x for c, x in cells.items() if set(x) != {"–"}}
        heads = ["×".join(map(str, g)) + ", gradient" * (k == "gradient") for k, g in shown]
        lines = [["", *heads], ["---"] * (len(heads) + 1)]
        lines += [[f"`{n}`", *(x[i] for x in shown.values())] for i, n in enumerate(names)]
        pages.append("\n".join("| " + " | ".join(line) + " |" for line in lines))
    return "\n\n".join(pages)


def _cell(found: dict[tuple[str, ...], float], kind: str, name: str, grid: str) -> str:
    far = [found.get((kind, name, backend, grid)) for backend in ("pmap", "shard_map")]
    said = ["–" if x is None else f"{x:.0e}" if x else "0" for x in far]
    return said[0] if said[0] == said[1] else " / ".join(said)


if __name__ == "__main__":
    given = [*sys.argv[1:], "", "", "", "", ""]
    file = Path(given[0] or "matrix.jsonl")
    if given[1] == "table":
        print(table(file))
    else:
        rows(
            file,
            (given[1] or "pmap,shard_map").split(","),
            given[2].split(",") if given[2] else SYSTEMS,
            given[3] != "gradient",
            given[4],
        )
