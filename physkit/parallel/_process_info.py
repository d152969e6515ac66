"""Which processes there are, as the launcher that started them says in the environment."""

import dataclasses
import re
import socket
from collections.abc import Callable, Mapping

from physkit.core import ClusterError

_FIRST_PORT, _PORTS = 20480, 12288  # below what systems hand out by themselves


@dataclasses.dataclass(frozen=True)
class ProcessInfo:
    """This process among those of a job.

    - `launcher`: who says so.
    - `process`, `processes`: which one this is, and how many there are.
    - `address`, `port`: where process 0 is met.
    - `local`, `locals`: the same counted on this machine; 0 of 1 where nobody says.
    """

    launcher: str
    process: int
    processes: int
    address: str
    port: int
    local: int = 0
    locals: int = 1

    def __post_init__(self):
        if not 0 <= self.process < self.processes or not 0 <= self.local < self.locals:
            raise ClusterError(
                f"{self.launcher} says that this is process {self.process} of {self.processes}, "
                f"{self.local} of {self.locals} on its machine; they count from 0"
            )


def detect_process(environment: Mapping[str, str]) -> ProcessInfo | None:
    """The job that this process was started in; None where it is alone.

    An allocation is not a job: in the shell of `salloc`, and in a batch script before `srun`, there is
    one process, whatever the number of tasks that were asked for.

    **Errors:** `ClusterError` when the launcher says too little.
    """
    for look in (_by_hand, _slurm, _open_mpi, _kubernetes):
        place = look(environment)
        if place is not None:
            return place if place.processes > 1 else None
    asked = environment.get("PHYSKIT_PROCESSES", "1").strip()
    if "PHYSKIT_COORDINATOR" in environment and asked != "1":
        raise ClusterError(
            f"PHYSKIT_PROCESSES={asked}, but nothing says which of them this is: set PHYSKIT_PROCESS, 0 for "
            "the first, or start them by a launcher (srun, mpirun)"
        )
    return None


def split_address(text: str) -> tuple[str, int]:
    """`host:port` in its parts.

    **Errors:** `ClusterError`.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ClusterError(f"an address reads host:port, as in node1:50000; got {text!r}")
    return host.strip("[]"), int(port)


def _by_hand(environment: Mapping[str, str]) -> ProcessInfo | None:
    """PHYSKIT_COORDINATOR, PHYSKIT_PROCESSES and PHYSKIT_PROCESS, for launchers that we do not know."""
    names = ("PHYSKIT_COORDINATOR", "PHYSKIT_PROCESSES", "PHYSKIT_PROCESS")
    if names[2] not in environment:
        return None
    missing = [name for name in names if name not in environment]
    if missing:
        raise ClusterError(f"{names[2]} is set, but not {' and '.join(missing)}")
    number = _numbers(environment, "the environment")
    address, port = split_address(environment[names[0]])
    return ProcessInfo("the environment", number(names[2]), number(names[1]), address, port)


def _slurm(environment: Mapping[str, str]) -> ProcessInfo | None:
    """A step of `srun`. What is set in a mere allocation (SLURM_NTASKS, SLURM_JOB_ID) says nothing."""
    if "SLURM_PROCID" not in environment or "SLURM_STEP_NUM_TASKS" not in environment:
        return None
    number = _numbers(environment, "Slurm")
    if number("SLURM_STEP_NUM_TASKS") == 1:
        return None
    job = number("SLURM_JOB_ID", 0) * 17 + number("SLURM_STEP_ID", 0) % 4096
    nodes = environment.get("SLURM_STEP_NODELIST", "")
    per_node = environment.get("SLURM_STEP_TASKS_PER_NODE", "1")
    address, port = _met_at(environment, lambda: first_host(nodes), job)
    return ProcessInfo(
        "Slurm",
        number("SLURM_PROCID"),
        number("SLURM_STEP_NUM_TASKS"),
        address,
        port,
        number("SLURM_LOCALID", 0),
        _on_node(per_node, number("SLURM_NODEID", 0)),
    )


def _open_mpi(environment: Mapping[str, str]) -> ProcessInfo | None:
    if "OMPI_COMM_WORLD_RANK" not in environment:
        return None
    number = _numbers(environment, "Open MPI")
    count, here = number("OMPI_COMM_WORLD_SIZE"), number("OMPI_COMM_WORLD_LOCAL_SIZE", 1)
    name = environment.get("PMIX_NAMESPACE") or environment.get("OMPI_MCA_ess_base_jobid", "0")
    job = sum(ord(letter) * 31**k for k, letter in enumerate(name))

    def host() -> str:
        said = re.search(
            r"tcp6?://\[?([^,\]]+?)[,:\]]", environment.get("OMPI_MCA_orte_hnp_uri", "")
        )
        if here == count:
            return "localhost"
        if said:
            return said[1]
        raise ClusterError(
            "Open MPI does not say where process 0 is: mpirun -x PHYSKIT_COORDINATOR=host:port …"
        )

    address, port = _met_at(environment, host, job)
    rank, local = number("OMPI_COMM_WORLD_RANK"), number("OMPI_COMM_WORLD_LOCAL_RANK", 0)
    return ProcessInfo("Open MPI", rank, count, address, port, local, here)


def _kubernetes(environment: Mapping[str, str]) -> ProcessInfo | None:
    """An indexed Job, whose pods are `name-0`, `name-1`, … of a headless service."""
    if "KUBERNETES_SERVICE_HOST" not in environment or "JOB_COMPLETION_INDEX" not in environment:
        return None
    if "PHYSKIT_PROCESSES" not in environment:
        return None  # an array of jobs that know nothing of each other looks the same
    number = _numbers(environment, "Kubernetes")
    index = number("JOB_COMPLETION_INDEX")

    def host() -> str:
        own = socket.getfqdn()
        first = re.sub(rf"^([^.]*)-{index}(\.|$)", r"\1-0\2", own)
        if index and first == own:
            raise ClusterError(
                f"{own} is not a name like job-{index}.service: set PHYSKIT_COORDINATOR=host:port"
            )
        return first

    address, port = _met_at(environment, host, 0)
    return ProcessInfo("Kubernetes", index, number("PHYSKIT_PROCESSES"), address, port)


def first_host(nodes: str) -> str:
    """The first machine of a list as Slurm writes it: `gpu[07-09,12]` → `gpu07`.

    **Errors:** `ClusterError`.
    """
    said = re.match(r"([^,\[\]]+)(?:\[(\d+)[^\]]*\]([^,\[\]]*))?", nodes)
    if said is None:
        raise ClusterError(f"SLURM_STEP_NODELIST reads {nodes!r}, which names no machine")
    return "".join(part or "" for part in said.groups())


def _on_node(tasks: str, node: int) -> int:
    """Tasks on the `node`-th machine of `2(x3),1`."""
    counts: list[int] = []
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", tasks):
        counts += [int(count)] * int(times or 1)
    return counts[node] if node < len(counts) else 1


def _met_at(environment: Mapping[str, str], host: Callable[[], str], job: int) -> tuple[str, int]:
    """Where process 0 is met: as PHYSKIT_COORDINATOR says, or at a port made from the job's number."""
    if "PHYSKIT_COORDINATOR" in environment:
        return split_address(environment["PHYSKIT_COORDINATOR"])
    return host(), _FIRST_PORT + job % _PORTS


def _numbers(environment: Mapping[str, str], launcher: str) -> Callable[..., int]:
    def number(name: str, default: int | None = None) -> int:
        said = environment.get(name, "" if default is None else str(default))
        if not said.isdigit():
            raise ClusterError(f"{launcher} sets {name}={said!r}, where a number should be")
        return int(said)

    return number
