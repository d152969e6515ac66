"""`python -m benchmarks [case …]`: every code on every case, one after the other, as a table."""

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

# case: (sizes, {code: precisions}); a code that is not installed is reported and passed over
CASES = {
    "lj_melt": ([4000, 32000], {
        "physkit": ["float32", "float64"],
        "jax-md": ["float32", "float64"],
        "lammps-1": ["float64"],
        "lammps-2": ["float64"],
        "openmm": ["float32"],
    }),
    "silicon": ([8000], {"physkit": ["float32", "float64"], "lammps-1": ["float64"]}),
    "water": ([3000, 24000], {
        "physkit": ["float32", "float64"],
        "openmm-1": ["float32"],
        "charges": ["float32", "float64"],
    }),
    "mesh_ewald": ([3000], {"physkit": ["float32", "float64"], "jax-md": ["float32", "float64"]}),
    "list_build": ([32000], {"physkit": ["float32", "float64"], "jax-md": ["float32", "float64"]}),
    "gravity": ([1000, 4096], {
        "physkit": ["float32", "float64"],
        "rebound": ["float64"],
    }),
    "navier_stokes": ([256, 1024], {
        "physkit": ["float32", "float64"],
        "exponax": ["float32", "float64"],
        "jax-cfd": ["float32", "float64"],
        "jax-cfd-rk4": ["float32"],
    }),
    "random_circuit": ([20], {
        "physkit": ["float32", "float64"],
        "qiskit-aer": ["float32", "float64"],
    }),
    "lindblad": ([3], {
        "physkit": ["float64"],
        "dynamiqs-rouchon2": ["float64"],
        "dynamiqs-rouchon3": ["float64"],
        "dynamiqs-rouchon3-dense": ["float64"],
        "dynamiqs-tsit5": ["float64"],
        "dynamiqs-tsit5-dense": ["float64"],
        "qutip-adams": ["float64"],
        "qutip-vern7": ["float64"],
    }),
    "gradient_circuit": ([12, 16], {"physkit": ["float32", "float64"]}),
    "lorenz": ([10000], {"physkit": ["float32", "float64"], "diffrax": ["float32", "float64"]}),
    "shallow_water": ([1000], {
        code: ["float32", "float64"]
        for code in ("physkit", "jnp.roll", "jnp.roll-2", "numba-1", "numba-2")
    }),
    "gas": ([256], {
        code: ["float32"] for code in ("physkit", "physkit-viscous", "astronomix")
    }),
    "magnetized_gas": ([256], {
        code: ["float32"] for code in ("physkit", "astronomix")
    }),
    "cavity": ([192, 256], {
        code: ["float32", "float64"]
        for code in ("physkit", "physkit-explicit", "phiflow", "phiflow-1e-5")
    }),
    "convection": ([192, 256], {
        code: ["float32", "float64"] for code in ("physkit", "phiflow", "phiflow-1e-5")
    }),
    "lattice_boltzmann": ([1024, 128], {
        "physkit": ["float32", "float64"],
        "numba-1": ["float32", "float64"],
        "xlb": ["float32"],
    }),
    "light": ([128], {
        code: ["float32"] for code in ("physkit", "jnp.roll", "numba-1", "numba-2", "fdtdx")
    }),
    "deposit": ([1_000_000], {
        "physkit": ["float32", "float64"],
        "at-add": ["float32", "float64"],
        "segment-sum": ["float32", "float64"],
        "physkit-sorted": ["float32", "float64"],
        "at-add-sorted": ["float32", "float64"],
        "numba-1": ["float32", "float64"],
        "numba-2": ["float32", "float64"],
    }),
    "pic": ([1_000_000], {
        "physkit": ["float32", "float64"],
        "at-add": ["float32", "float64"],
        "physkit-sorted": ["float32", "float64"],
        "at-add-sorted": ["float32", "float64"],
        "numba-1": ["float32", "float64"],
    }),
    "gradient_liquid": ([1000, 10_000], {
        code: ["float32", "float64"] for code in ("direct", "nested", "binomial", "reversible")
    }),
    "gradient_flow": ([500], {
        code: ["float32"] for code in ("direct", "nested", "binomial", "exponax")
    }),
    "gradient_orbits": ([1000, 100_000], {
        code: ["float64"] for code in ("direct", "nested", "binomial", "reversible")
    }),
    "gradient_light": ([100, 1000], {
        code: ["float32", "float64"] for code in ("direct", "nested", "binomial", "reversible")
    }),
    "gradient_sound": ([100, 1000], {
        code: ["float32", "float64"] for code in ("direct", "nested", "binomial", "reversible")
    }),
    "ensemble_lorenz": ([10_000], {
        code: ["float32", "float64"]
        for code in ("physkit", "vmap", "loop", "diffrax", "numba-1", "numba-2")
    }),
    "ensemble_argon": ([1000], {
        code: ["float32"] for code in ("physkit", "loop", "lists", "loop-lists", "numba-1", "numba-2")
    }),
    "search_lorenz": ([10_000], {code: ["float32"] for code in ("search", "sweep")}),
    "ensemble_memory": ([1000, 4000], {code: ["float32"] for code in ("lorenz", "argon")}),
    "fit_planets": ([34], {
        code: ["float64"] for code in ("physkit", "scipy", "scipy-defaults")
    }),
}  # fmt: skip
PEERS = (
    "astronomix", "jax", "equinox", "diffrax", "dynamiqs", "exponax", "fdtdx", "jax-cfd", "jax-md", "lammps",
    "numba", "openmm", "phiflow", "qiskit-aer", "qutip", "rebound", "xlb",
)  # fmt: skip


def measure(case: str, code: str, size: int, precision: str) -> dict:
    """One measurement in a process of its own, so that codes share neither threads nor settings."""
    done = subprocess.run(
        command_of(case, code, size, precision), capture_output=True, text=True, check=False,
        env=os.environ | settings_of(precision), cwd=Path(__file__).parents[1],
    )  # fmt: skip
    return read_measurement(done.returncode, done.stdout, done.stderr)


def command_of(case: str, code: str, size: int, precision: str) -> list[str]:
    """What starts a measurement."""
    command = [sys.executable, "-m", f"benchmarks.{case}"]
    return [*command, "--code", code, "--size", str(size), "--precision", precision]


def settings_of(precision: str) -> dict[str, str]:
    """What a measurement needs in its environment."""
    x64 = "1" if precision == "float64" else "0"
    # Tracebacks are unfiltered, so that the last line is the error.
    return {"JAX_ENABLE_X64": x64, "JAX_TRACEBACK_FILTERING": "off"}


def read_measurement(status: int, output: str, errors: str) -> dict:
    """The measurement that a process has printed, or why there is none."""
    lines = output.strip().splitlines()
    if status or not lines:
        return {"failed": (errors.strip().splitlines() or ["no output"])[-1]}
    return json.loads(lines[-1])


def table(rows: list[dict]) -> str:
    """All rows, each with its ratio to physkit in the same precision (or its nearest)."""
    head = (
        "| case | size | code | precision | rate | physkit is | compile s | first call s | note |"
    )
    lines = [head, "|---" * 9 + "|"]
    for row in rows:
        key = (row["case"], row["size"])
        ours = [r for r in rows if (r["case"], r["size"]) == key and r["code"] == "physkit"]
        if "failed" in row:
            lines.append(
                f"| {row['case']} | {row['size']} | {row['code']} | {row['precision']} | – | – | – | – | "
                f"{row['failed'][:80]} |"
            )
            continue
        ratios = [
            f"{own['rate'] / row['rate']:.2f}× ({own['precision'][-2:]})"
            for own in ours
            if "rate" in own and row["code"] != "physkit"
        ]
        known = lambda name, row=row: f"{row[name]:.2f}" if name in row else "–"
        lines.append(
            f"| {row['case']} | {row['size']} | {row['code']} | {row['precision']} | "
            f"{row['rate']:.4g} {row['unit']} | {', '.join(ratios) or '–'} | {known('compile')} | "
            f"{known('first')} | {row.get('note', '')} |"
        )
    return "\n".join(lines)


def machine() -> str:
    """What the figures were measured on."""
    versions = []
    for peer in PEERS:
        try:
            versions.append(f"{peer} {importlib.metadata.version(peer)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"{peer} missing")
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            x.split(":")[1].strip() for x in cpuinfo.read_text().splitlines() if "model name" in x
        ]
        model = names[0] if names else model
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}, {', '.join(versions)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; all if left out")
    parser.add_argument("--record", type=Path, help="also write the table to this file")
    args = parser.parse_args()
    rows = []
    for case in args.cases or CASES:
        sizes, codes = CASES[case]
        for size in sizes:
            for code, precisions in codes.items():
                for precision in precisions:
                    row = {"case": case, "size": size, "code": code, "precision": precision}
                    rows.append(row | measure(case, code, size, precision))
                    print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    text = f"{machine()}, {datetime.date.today()}\n\n{table(rows)}\n"
    print(text)
    if args.record:
        args.record.write_text(text)


if __name__ == "__main__":
    main()
