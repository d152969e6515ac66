"""Which process of a job this is, read from the environment variables that its launcher set."""

import dataclasses
import functools
import re
import socket
from collections.abc import Callable, Mapping

from physkit.core import ClusterError

# 20480 … 32767: below the ephemeral range, from which the system hands out ports to any connection.
_FIRST_PORT, _NUM_PORTS = 20480, 12288


@dataclasses.dataclass(frozen=True)
class ProcessInfo:
    """This process among those of a job.

    - `launcher`: name of the launcher that set the environment, for messages.
    - `process_index`, `process_count`: which process this is, and how many there are.
    - `address`, `port`: where process 0 listens.
    - `local_index`, `local_count`: the index and the count among the processes of this machine; 0 of 1 if
      unknown.
    - `job`: the launcher's name of the job, which other jobs do not have; empty if it gives none.

    **Errors:** `ClusterError` for an index that is not below its count.
    """

    launcher: str
    process_index: int
    process_count: int
    address: str
    port: int
    local_index: int = 0
    local_count: int = 1
    job: str = ""

    def __post_init__(self):
        is_valid = 0 <= self.process_index < self.process_count
        if not is_valid or not 0 <= self.local_index < self.local_count:
            raise ClusterError(
                f"{self.launcher} says that this is process {self.process_index} of "
                f"{self.process_count}, {self.local_index} of {self.local_count} on its machine; "
                "they count from 0"
            )

    @property
    def job_description(self) -> str:
        """The job in words: the same in all of its processes, and another one in other jobs."""
        name = f"{self.launcher} {self.job}" if self.job else self.launcher
        return f"{name}, {self.process_count} processes"


def detect_process(environment: Mapping[str, str]) -> ProcessInfo | None:
    """Detect the job that this process was started in; None if it is the only process.

    An allocation is not a job. In the shell of `salloc`, and in a batch script before `srun`, there is one
    process, however many tasks were asked for.

    **Errors:** `ClusterError` if the launcher's variables are incomplete or contradictory.
    """
    # Variables that a user sets come first: they overrule what a launcher says.
    for from_launcher in (_from_variables, _from_slurm, _from_open_mpi, _from_kubernetes):
        info = from_launcher(environment)
        if info is not None:
            return info if info.process_count > 1 else None
    requested = environment.get("PHYSKIT_PROCESSES", "1").strip()
    if "PHYSKIT_COORDINATOR" in environment and requested != "1":
        raise ClusterError(
            f"PHYSKIT_PROCESSES={requested}, but nothing says which of them this is: set "
            "PHYSKIT_PROCESS, 0 for the first, or start them by a launcher (srun, mpirun)"
        )
    return None


def split_address(text: str) -> tuple[str, int]:
    """Split `host:port`.

    **Errors:** `ClusterError` for a text that is no address.
    """
    # From the right, and without brackets: `[::1]:5000` is an address of IPv6.
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ClusterError(f"an address reads host:port, as in node1:50000; got {text!r}")
    return host.strip("[]"), int(port)


def _from_variables(environment: Mapping[str, str]) -> ProcessInfo | None:
    """PHYSKIT_COORDINATOR, PHYSKIT_PROCESSES and PHYSKIT_PROCESS: for launchers that are unknown here."""
    names = ("PHYSKIT_COORDINATOR", "PHYSKIT_PROCESSES", "PHYSKIT_PROCESS")
    if names[2] not in environment:
        return None
    missing = [name for name in names if name not in environment]
    if missing:
        raise ClusterError(f"{names[2]} is set, but not {' and '.join(missing)}")
    read_number = _number_reader(environment, "the environment")
    address, port = split_address(environment[names[0]])
    return ProcessInfo(
        "the environment", read_number(names[2]), read_number(names[1]), address, port
    )


def _from_slurm(environment: Mapping[str, str]) -> ProcessInfo | None:
    """A step of `srun`. (SLURM_NTASKS and SLURM_JOB_ID are set in a mere allocation, too.)"""
    if "SLURM_PROCID" not in environment or "SLURM_STEP_NUM_TASKS" not in environment:
        return None
    read_number = _number_reader(environment, "Slurm")
    if read_number("SLURM_STEP_NUM_TASKS") == 1:
        return None
    job, step = read_number("SLURM_JOB_ID", 0), read_number("SLURM_STEP_ID", 0)
    # Steps of one job, and jobs on one machine, should not use the same port. (Special steps have ids near
    # 2³², hence the remainder.)
    job_number = job * 17 + step % 4096
    nodes = environment.get("SLURM_STEP_NODELIST", "")
    per_node = environment.get("SLURM_STEP_TASKS_PER_NODE", "1")
    address, port = _coordinator_address(
        environment, functools.partial(first_host, nodes), job_number
    )
    return ProcessInfo(
        "Slurm",
        read_number("SLURM_PROCID"),
        read_number("SLURM_STEP_NUM_TASKS"),
        address,
        port,
        read_number("SLURM_LOCALID", 0),
        _tasks_on_node(per_node, read_number("SLURM_NODEID", 0)),
        f"{job}.{step}",
    )


def _from_open_mpi(environment: Mapping[str, str]) -> ProcessInfo | None:
    """A process of `mpirun`."""
    if "OMPI_COMM_WORLD_RANK" not in environment:
        return None
    read_number = _number_reader(environment, "Open MPI")
    process_count = read_number("OMPI_COMM_WORLD_SIZE")
    local_count = read_number("OMPI_COMM_WORLD_LOCAL_SIZE", 1)
    # Jobs have names here, not numbers. Not `hash(name)`, which differs from process to process.
    name = environment.get("PMIX_NAMESPACE") or environment.get("OMPI_MCA_ess_base_jobid", "0")
    job_number = sum(ord(letter) * 31**k for k, letter in enumerate(name))

    def first_address() -> str:
        # Of `mpirun` itself, as in `1531576320.0;tcp://10.96.0.1,10.148.0.1:34911`: process 0 runs beside it.
        launcher_uri = environment.get("OMPI_MCA_orte_hnp_uri", "")
        match = re.search(r"tcp6?://\[?([^,\]]+?)[,:\]]", launcher_uri)
        if local_count == process_count:
            return "localhost"
        if match:
            return match[1]
        raise ClusterError(
            "Open MPI does not say where process 0 is: mpirun -x PHYSKIT_COORDINATOR=host:port …"
        )

    address, port = _coordinator_address(environment, first_address, job_number)
    return ProcessInfo(
        "Open MPI",
        read_number("OMPI_COMM_WORLD_RANK"),
        process_count,
        address,
        port,
        read_number("OMPI_COMM_WORLD_LOCAL_RANK", 0),
        local_count,
        name,
    )


def _from_kubernetes(environment: Mapping[str, str]) -> ProcessInfo | None:
    """An indexed Job, whose pods are `name-0`, `name-1`, … of a headless service."""
    if "KUBERNETES_SERVICE_HOST" not in environment or "JOB_COMPLETION_INDEX" not in environment:
        return None
    if "PHYSKIT_PROCESSES" not in environment:
        return (
            None  # a Job whose pods work each for itself, as those of an array do, looks the same
        )
    read_number = _number_reader(environment, "Kubernetes")
    index = read_number("JOB_COMPLETION_INDEX")

    def first_address() -> str:
        this_host = socket.getfqdn()
        # The name of pod 0 is that of this one with another index: `job-3.service` → `job-0.service`.
        first_pod = re.sub(rf"^([^.]*)-{index}(\.|$)", r"\1-0\2", this_host)
        if index and first_pod == this_host:
            raise ClusterError(
                f"the host name {this_host} does not read like job-{index}.service: set "
                "PHYSKIT_COORDINATOR=host:port"
            )
        return first_pod

    address, port = _coordinator_address(environment, first_address, 0)
    return ProcessInfo("Kubernetes", index, read_number("PHYSKIT_PROCESSES"), address, port)


def first_host(nodes: str) -> str:
    """The first machine of a node list of Slurm: `gpu[07-09,12]` → `gpu07`, `rack[1-2]n[3-4]` → `rack1n3`.

    **Errors:** `ClusterError` for a list that names no machine.
    """
    # Up to the first comma outside of brackets; of each range its first number.
    match = re.match(r"(?:[^,\[\]]|\[\d[^\]]*\])+", nodes)
    if match is None:
        raise ClusterError(f"SLURM_STEP_NODELIST reads {nodes!r}, which names no machine")
    return re.sub(r"\[(\d+)[^\]]*\]", r"\1", match[0])


def _tasks_on_node(tasks: str, node: int) -> int:
    """Number of tasks on machine `node` of a list like `2(x3),1`."""
    counts: list[int] = []
    for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", tasks):
        counts += [int(count)] * int(times or 1)
    return counts[node] if node < len(counts) else 1


def _coordinator_address(
    environment: Mapping[str, str], first_address: Callable[[], str], job_number: int
) -> tuple[str, int]:
    """Where process 0 listens: PHYSKIT_COORDINATOR, or a port derived from the job's number.

    All processes must derive the same address before they can talk to each other. `first_address` is called
    only where it is needed, since it raises where the launcher tells too little.
    """
    if "PHYSKIT_COORDINATOR" in environment:
        return split_address(environment["PHYSKIT_COORDINATOR"])
    return first_address(), _FIRST_PORT + job_number % _NUM_PORTS


def _number_reader(environment: Mapping[str, str], launcher: str) -> Callable[..., int]:
    """Return a function that reads a number, or raises a `ClusterError` that names `launcher`."""

    def read_number(name: str, default: int | None = None) -> int:
        text = environment.get(name, "" if default is None else str(default))
        if not text.isdigit():
            raise ClusterError(f"{launcher} sets {name}={text!r}, where a number should be")
        return int(text)

    return read_number
