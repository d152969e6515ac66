"""`initialize` joins several processes to one group, or raises at once where they cannot work together."""

import atexit
import contextlib
import hashlib
import os
import re
import signal
import socket
import sys
import threading
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax

from physkit.core import ClusterError

from ._control_channel import ControlChannel
from ._environment import versions
from ._messages import JsonValue, Message
from ._process_info import ProcessInfo, detect_process, split_address
from ._rendezvous import open_channel

# What must be the same in all processes. Otherwise they would compile different programs, whose collectives
# do not match: they hang, or exchange wrong numbers.
_MUST_AGREE = ("physkit", "jax", "jaxlib", "python", "numpy", "precision", "script")
# Seconds that a process which has ended its script waits for the others. JAX aborts all of them then, also one
# that is still writing results, and its own 300 s are short for that.
_SHUTDOWN_TIMEOUT = 3600


class ProcessGroup:
    """The processes that run this script together, and which of them this one is.

    - `process_index`, `process_count`: which process this is, and how many there are.
    - `launcher`: what started them: Slurm, Open MPI, Kubernetes, …; None for a single process.
    - `names`: how messages name each of them: number, machine, process id.
    """

    def __init__(self, info: ProcessInfo | None, channel: ControlChannel | None):
        self._channel = channel
        self.process_index = 0 if info is None else info.process_index
        self.process_count = 1 if info is None else info.process_count
        self.launcher = None if info is None else info.launcher
        self.names = (
            [f"process 0 ({socket.gethostname()}, {os.getpid()})"]
            if channel is None
            else channel.names
        )

    @property
    def is_first(self) -> bool:
        """Whether this is process 0, which writes and prints for all."""
        return self.process_index == 0

    def all_gather_object(self, value: JsonValue, what: str) -> list[Any]:
        """Gather the `value` of each process, in the order of processes, on every process.

        All processes must call it, in the same order. It goes through the control channel, not through
        devices: for a few numbers or names, not for arrays.

        **Arguments:**

        - `value`: anything that JSON takes.
        - `what`: what is gathered, for the error; the same in all processes.

        **Errors:** `ClusterError` if the processes are at different places of the program.
        """
        return [value] if self._channel is None else self._channel.all_gather_object(value, what)

    def stopping_by(self, signals: Iterable[int]) -> contextlib.AbstractContextManager[None]:
        """While inside, these signals end this process also where it waits for others that do not come.

        In the main thread only. A single process waits for nobody.
        """
        if self._channel is None:
            return contextlib.nullcontext()
        return self._channel.stopping_by(signals)

    def __repr__(self) -> str:
        if self.process_count == 1:
            return "ProcessGroup of one process"
        return (
            f"ProcessGroup of {self.process_count} processes under {self.launcher}, this one "
            f"{self.process_index}"
        )


# Empty before `initialize`, then its group: a list, so that functions can fill it without `global`.
_initialized: list[ProcessGroup] = []


def process_group() -> ProcessGroup:
    """The group of this process: a single process, unless `initialize` found others."""
    return _initialized[0] if _initialized else single_process()


def single_process() -> ProcessGroup:
    """A group of this process alone, for work that each process does by itself."""
    return ProcessGroup(None, None)


def initialize(
    coordinator: str | None = None,
    processes: int | None = None,
    process: int | None = None,
    *,
    wait: float = 300.0,
    silence: float = 60.0,
) -> ProcessGroup:
    """Join the other processes of this job, so that `devices=` reaches all of their devices.

    Call it first in a script, before any array is made. Without arguments it detects Slurm (`srun`), Open MPI
    (`mpirun`) and Kubernetes (indexed Jobs). For a single process, or in the mere allocation of `salloc`, it
    does nothing, so that the same script runs anywhere. Versions, precision and the script itself must be the
    same everywhere.

    From then on a process that is killed, falls silent or raises an error ends the others, too, within
    seconds. Without that, their collectives would wait for it forever.

    **Arguments:**

    - `coordinator`: `host:port` where the others find process 0; or PHYSKIT_COORDINATOR.
    - `processes`, `process`: how many there are, and which one this is, counted from 0. Each takes all GPUs
      that it sees: where several share a machine, give each its own by CUDA_VISIBLE_DEVICES.
    - `wait`: seconds that processes wait for each other at the start.
    - `silence`: seconds without a heartbeat after which a process counts as lost.

    **Returns:** the group; the same one on every further call.

    **Errors:** `ClusterError` when processes do not come or are not alike, or when JAX has already
    looked for its devices.

    **Good values:** the defaults. A longer `wait` where the scheduler starts tasks far apart in time, a longer
    `silence` where processes may be suspended.

    **Notes:** on CPU, one process a machine or socket, each with
    XLA_FLAGS=--xla_force_host_platform_device_count=N; on GPU, one a GPU or one a machine. Always
    `srun --kill-on-bad-exit=1`.
    """
    if _initialized:
        return _initialized[0]
    info = _process_info(coordinator, processes, process)
    if info is None:
        _initialized.append(single_process())
        return _initialized[0]
    introduction = {
        "process": info.process_index,
        "processes": info.process_count,
        "job": info.job_description,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "identity": program_identity(),
    }

    with contextlib.ExitStack() as reserved:

        def decide(introductions: list[Message]) -> Message:
            port = reserved.enter_context(_reserved_port())
            return _jax_coordinator(introductions, info.address, port)

        # First our own channel, then JAX: what keeps processes from working together has an error that names
        # it, where JAX would wait until its timeout.
        channel, answer = open_channel(
            (info.address, info.port), introduction, wait, silence, decide
        )
        _report_end(channel)
        _join_jax(info, answer["coordinator"], wait)
    # Not before: a script may catch the error of devices that could not be joined.
    _initialized.append(ProcessGroup(info, channel))
    _restore_sigterm()
    return _initialized[0]


def _join_jax(info: ProcessInfo, coordinator: str, wait: float) -> None:
    """Join the devices of all processes.

    **Errors:** `ClusterError` when JAX has already looked for its devices.
    """
    try:
        jax.distributed.initialize(
            coordinator,
            info.process_count,
            info.process_index,
            local_device_ids=_assigned_gpus(info, os.environ),
            # The launcher has been detected above; JAX would detect it by rules of its own.
            cluster_detection_method="deactivate",
            initialization_timeout=max(1, int(wait)),
            shutdown_timeout_seconds=_SHUTDOWN_TIMEOUT,
        )
    except RuntimeError as error:
        # JAX has no class of its own for this error; its text says "must be called before any JAX calls".
        if "before" not in str(error):
            raise
        raise ClusterError(
            "physkit.parallel.initialize() must come before anything else that uses JAX: devices that "
            "have been looked for cannot be joined to others any more"
        ) from error


def _restore_sigterm() -> None:
    """Let SIGTERM end this process outside of `run`, too: JAX has just installed a handler for preemption."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # JAX installs its handler in C++, so that Python still reports the default. Setting the default
        # again puts it in place of JAX's handler.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _process_info(
    coordinator: str | None, processes: int | None, process: int | None
) -> ProcessInfo | None:
    """This process among those of the job, as given or as detected; None if it is the only one."""
    if processes is None and process is None:
        environment = dict(os.environ)
        if coordinator is not None:
            environment["PHYSKIT_COORDINATOR"] = coordinator
        return detect_process(environment)
    if coordinator is None or processes is None or process is None:
        raise ClusterError(
            "give coordinator, processes and process together, or neither processes nor process"
        )
    address, port = split_address(coordinator)
    info = ProcessInfo("the script", process, processes, address, port)
    return info if processes > 1 else None


def program_identity() -> dict[str, str]:
    """Versions, precision and the script's hash, which decide whether two processes compile the same."""
    script = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path()
    text = script.read_bytes() if script.is_file() else b""
    return {
        **versions(),
        "script": f"{script.name} {hashlib.sha256(text).hexdigest()[:12]}",
    }


@contextlib.contextmanager
def _reserved_port() -> Iterator[int]:
    """A free port that, within this context, JAX's coordinator alone can have.

    Looked for and let go, it could be another program's before JAX listens there.
    """
    with socket.socket() as reserved:
        # JAX's listener sets the same option, so that both may have the port; connections go to the one that
        # listens. Windows has no such option: there the port is let go.
        is_shared = hasattr(socket, "SO_REUSEPORT")
        if is_shared:
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("", 0))
        port = reserved.getsockname()[1]
        if not is_shared:
            reserved.close()
        yield port


def _jax_coordinator(introductions: list[Message], host: str, port: int) -> Message:
    """The address of JAX's coordinator, or why the processes cannot work together."""
    first = introductions[0]
    expected, differences = first["identity"], []
    for other in introductions[1:]:
        identity = other["identity"]
        differences += [
            f"process {other['process']} on {other['host']} has {name} {identity.get(name)}, process 0 "
            f"on {first['host']} has {expected[name]}"
            for name in _MUST_AGREE
            if identity.get(name) != expected[name]
        ]
    if differences:
        more = f"\n  … and {len(differences) - 5} more" if len(differences) > 5 else ""
        return {
            "refused": "the processes are not alike, and would compile different programs:\n  "
            + "\n  ".join(differences[:5])
            + more
        }
    return {"coordinator": f"{host}:{port}"}


def _assigned_gpus(info: ProcessInfo, environment: Mapping[str, str]) -> list[int] | None:
    """Indices of the visible GPUs that are this process's; None: all of them."""
    visible = [n for n in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if n.strip()]
    if info.local_count == 1 or (visible and len(visible) < info.local_count):
        return None  # alone on its machine, or the launcher has given it its own GPUs
    # As in `2` or `a100:2`. Slurm gives each task a list of its own then, but for `--gpu-bind=none`.
    per_task = re.findall(r"(\d+)(?:,|$)", environment.get("SLURM_GPUS_PER_TASK", ""))
    if per_task and len(visible) in (0, sum(map(int, per_task))):
        return None
    per_process, rest = divmod(len(visible), info.local_count)
    # With an unknown number of GPUs, or one that does not divide: one GPU a process.
    if not visible or rest:
        return [info.local_index]
    return list(range(info.local_index * per_process, (info.local_index + 1) * per_process))


def _report_end(channel: ControlChannel) -> None:
    """Arrange that the others learn how this process ends: an uncaught error ends all, a regular end none."""
    excepthook_before = sys.excepthook

    def report_and_exit(
        kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
    ) -> None:
        # The traceback first: what follows may end the process.
        excepthook_before(kind, error, trace)
        channel.report_failure(re.sub(r"\s+", " ", f"{kind.__name__}: {error}"))
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        # `os._exit` skips atexit, where JAX's shutdown would wait for the others to end, too.
        os._exit(130 if issubclass(kind, KeyboardInterrupt) else 1)

    sys.excepthook = report_and_exit
    atexit.register(channel.close)
