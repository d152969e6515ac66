"""Several processes on this machine, started as Slurm would start them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LIMIT = 120  # seconds


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return one.getsockname()[1]


def launch(
    script: str | Path,
    *words: object,
    processes: int = 2,
    devices: int = 1,
    each=None,
    **environment,
) -> list[subprocess.Popen]:
    """`srun -n processes python script words …`, on this machine; `each[k]` is for process k alone.

    What the script needs of JAX it says itself; the number of emulated devices comes from here.
    """
    started = []
    port = free_port()
    for k in range(processes):
        settings = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SLURM_")},
            "PYTHONPATH": str(ROOT),
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
            "JAX_ENABLE_X64": "1",
            "SLURM_JOB_ID": "7",
            "SLURM_STEP_ID": "0",
            "SLURM_NTASKS": str(processes),
            "SLURM_STEP_NUM_TASKS": str(processes),
            "SLURM_STEP_NODELIST": "localhost",
            "SLURM_STEP_TASKS_PER_NODE": str(processes),
            "SLURM_NODEID": "0",
            "SLURM_PROCID": str(k),
            "SLURM_LOCALID": str(k),
            "PHYSKIT_COORDINATOR": f"localhost:{port}",
            **_kept(),
            **environment,
            **(each or {}).get(k, {}),
        }
        command = [sys.executable, str(script), *map(str, words)]
        started.append(
            subprocess.Popen(
                command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
    return started


def _kept() -> dict[str, str]:
    """Where compiled programs are kept, as for the tests themselves."""
    if os.environ.get("CI"):
        return {}
    return {
        "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "processes"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def ended(started: list[subprocess.Popen], limit: float = LIMIT) -> list[tuple[int, str]]:
    """Exit status and words of each; none is left running."""
    try:
        said = [process.communicate(timeout=limit)[0] for process in started]
        return [(p.returncode, text) for p, text in zip(started, said, strict=True)]
    finally:
        for process in started:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
