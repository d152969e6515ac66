"""A real Slurm for the tests of this folder: `make test-slurm`, or PHYSKIT_SLURM=1 and `-m ""`.

Where SLURM_CONF names a cluster that answers (`tests/slurm/cluster.sh start FOLDER`), that one is
used; otherwise one is started for the session and stopped after it. Every test here is slow.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).with_name("cluster.sh")
_FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if _FOLDER in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def slurm():
    """The folder of a running Slurm of two nodes, `pk-n1` and `pk-n2`; SLURM_CONF is set."""
    if os.environ.get("PHYSKIT_SLURM") != "1":
        pytest.skip("needs a Slurm on this machine: make test-slurm (or PHYSKIT_SLURM=1)")
    if "SLURM_CONF" in os.environ:
        answer = subprocess.run(["sinfo", "-h"], capture_output=True, text=True, timeout=30)
        assert answer.returncode == 0, f"SLURM_CONF is set, and sinfo says: {answer.stderr}"
        yield Path(os.environ["SLURM_CONF"]).parent
        return
    # A short path: it holds Unix sockets, whose paths may have about a hundred characters.
    folder = Path(tempfile.mkdtemp(prefix="pk-slurm-", dir="/tmp"))
    start = subprocess.run(
        ["sh", _SCRIPT, "start", folder],
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        env={**os.environ, "PHYSKIT_SLURM_PORT": str(_free_ports(3))},
    )
    if start.returncode:
        shutil.rmtree(folder)
        pytest.fail(f"cluster.sh start: {start.stderr}", pytrace=False)
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    try:
        yield folder
    finally:
        subprocess.run(["sh", _SCRIPT, "stop", folder], timeout=120, check=False)
        del os.environ["SLURM_CONF"]
        shutil.rmtree(folder, ignore_errors=True)


def _free_ports(count: int) -> int:
    """The first of some ports in a row that nobody listens on: another such cluster may be running."""
    for first in range(16817, 17817, count):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no free ports")


def command(*words: object, timeout: float = 120) -> str:
    """What a command prints; it must succeed."""
    process = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=timeout
    )
    assert process.returncode == 0, f"{words}: {process.stderr}{process.stdout}"
    return process.stdout.strip()


@pytest.fixture
def run_command(slurm):
    """A function: the words of a command, run beside the cluster, to what it prints."""
    del slurm
    return command
