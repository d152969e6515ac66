r"""Every system on every grid of devices by every backend, against one device: a table.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 NPROC=16 JAX_ENABLE_X64=1 \
        python -m tests.parallel.matrix [results.jsonl] [backends] [systems] [gradient] [grids]
    python -m tests.parallel.matrix results.jsonl table

It writes a line of JSON per case, and skips the cases that the file has already. `table` prints the table
of `docs/devices.md`.
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


def run_cases(path: Path, backends: list[str], names: list[str], forward: bool, only: str = ""):
    """Run the cases that the file does not have yet, and append them."""
    done = {tuple(case) for case in results(path)} if path.exists() else set()
    kind = "state" if forward else "gradient"
    for name in names:
        for backend in backends:
            for devices in _grids(name, forward):
                case = (kind, name, backend, str(devices))
                if case in done or (only and str(devices).replace(" ", "") not in only):
                    continue
                one = _on_one_device(name, forward)
                os.environ["PHYSKIT_SPMD"] = backend
                begin = time.time()
                differences = _differences(name, devices, one, forward)
                row = {
                    "case": case,
                    "differences": differences,
                    "seconds": round(time.time() - begin, 1),
                }
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def _grids(name: str, forward: bool) -> list[tuple[int, ...]]:
    """Grids of devices for a system, the largest first."""
    if name in particle_cases.SYSTEMS:
        return sorted(SLABS, reverse=True) if forward else [(2,)]
    grids = field_cases.SYSTEMS[name][1]
    return (
        sorted(grids, key=lambda g: -max(g)) if forward else field_cases.GRADIENT_GRIDS[len(grids)]
    )


@functools.lru_cache(maxsize=1)
def _on_one_device(name: str, forward: bool):
    """Result or gradient of one device."""
    if name in particle_cases.SYSTEMS:
        return (
            particle_cases.run_system(name, None)
            if forward
            else particle_cases.gradient(name, None)
        )
    case, _ = field_cases.SYSTEMS[name]
    return field_cases.on_one_device(case) if forward else field_cases.gradient(case, None)


def _differences(name: str, devices: tuple[int, ...], one, forward: bool) -> list[float]:
    """Largest relative differences of several devices to it, array by array."""
    if name in particle_cases.SYSTEMS:
        if forward:
            return list(particle_cases.differences(name, devices, one=one).values())
        pairs = zip(jax.tree.leaves(particle_cases.gradient(name, devices)), jax.tree.leaves(one))
        return [field_cases.distance(b, a) for a, b in pairs]
    case, _ = field_cases.SYSTEMS[name]
    if not forward:
        return [field_cases.distance(one, field_cases.gradient(case, devices))]
    return [
        field_cases.distance(a, b)
        for a, b in zip(one, field_cases.over_devices(case, devices), strict=True)
    ]


def results(path: Path) -> dict[tuple[str, ...], float]:
    """The largest difference of every case in a file."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {tuple(line["case"]): max(line["differences"]) for line in lines}


def table(path: Path) -> str:
    """The results of a file as a Markdown table: a row per system, a column per grid of devices.

    Where the backends differ, first `pmap`, then `shard_map`. Empty columns are left out.
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
    differences = [found.get((kind, name, backend, grid)) for backend in ("pmap", "shard_map")]
    cells = ["–" if x is None else f"{x:.0e}" if x else "0" for x in differences]
    return cells[0] if cells[0] == cells[1] else " / ".join(cells)


if __name__ == "__main__":
    arguments = [*sys.argv[1:], "", "", "", "", ""]
    file = Path(arguments[0] or "matrix.jsonl")
    if arguments[1] == "table":
        print(table(file))
    else:
        run_cases(
            file,
            (arguments[1] or "pmap,shard_map").split(","),
            arguments[2].split(",") if arguments[2] else SYSTEMS,
            arguments[3] != "gradient",
            arguments[4],
        )
