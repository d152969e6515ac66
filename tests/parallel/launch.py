"""Several processes on this machine, started as Slurm would start them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TIMEOUT = 120  # seconds


def free_port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def launch(
    script: str | Path,
    *arguments: object,
    processes: int = 2,
    devices: int = 1,
    each=None,
    **environment,
) -> list[subprocess.Popen]:
    """`srun -n processes python script arguments …`, on this machine; `each[k]` is for process k alone.

    The script configures JAX itself; the number of emulated devices comes from here.
    """
    started = []
    port = free_port()
    for k in range(processes):
        settings = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SLURM_")},
            "PYTHONPATH": str(ROOT),
            "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}",
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
            **_compilation_cache(),
            **environment,
            **(each or {}).get(k, {}),
        }
        command = [sys.executable, str(script), *map(str, arguments)]
        started.append(
            subprocess.Popen(
                command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
    return started


def _compilation_cache() -> dict[str, str]:
    """Settings that cache compiled programs, as for the tests themselves."""
    if os.environ.get("CI"):
        return {"JAX_ENABLE_COMPILATION_CACHE": "0"}
    return {
        "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "processes"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def wait_for_all(
    started: list[subprocess.Popen], timeout: float = TIMEOUT
) -> list[tuple[int, str]]:
    """Wait for all processes; return exit status and output of each. None is left running."""
    try:
        outputs = [process.communicate(timeout=timeout)[0] for process in started]
        return [(p.returncode, text) for p, text in zip(started, outputs, strict=True)]
    finally:
        for process in started:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
