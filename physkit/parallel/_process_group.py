"""`initialize`: several processes become one group, or learn at once why they cannot."""

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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from physkit.core import ClusterError

from ._control_channel import ControlChannel
from ._environment import versions
from ._messages import Message
from ._process_info import ProcessInfo, detect_process, split_address
from ._rendezvous import open_channel

# What must be the same everywhere, or the processes would compile different programs.
_MUST_AGREE = ("physkit", "jax", "jaxlib", "python", "numpy", "precision", "script")


class ProcessGroup:
    """The processes that run this script together, and this one's place among them.

    - `process_index`, `process_count`: which process this is, and how many there are.
    - `launcher`: what started them: Slurm, Open MPI, Kubernetes, …
    - `names`: what each is called in messages: number, machine, process id.
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

    def all_gather_object(self, value: Any, what: str) -> list[Any]:
        """Gather the `value` of each process (anything that JSON takes), in their order.

        All processes must call it, for the same `what`.

        **Errors:** `ClusterError` if they are at different places of the program.
        """
        return [value] if self._channel is None else self._channel.all_gather_object(value, what)

    def __repr__(self) -> str:
        if self.process_count == 1:
            return "ProcessGroup of one process"
        return (
            f"ProcessGroup of {self.process_count} processes under {self.launcher}, this one "
            f"{self.process_index}"
        )


_initialized: list[ProcessGroup] = []


def process_group() -> ProcessGroup:
    """The group of this process: of one process, unless `initialize` found others."""
    return _initialized[0] if _initialized else single_process()


def single_process() -> ProcessGroup:
    """A group of this process only, for what each process does by itself."""
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

    The first call of a script, before any array is made. Without arguments, Slurm (`srun`), Open MPI
    (`mpirun`) and Kubernetes (indexed Jobs) are detected; for a single process, or in the mere allocation
    of `salloc`, it does nothing, so that the same script runs anywhere. Versions, precision and the script
    itself must be the same everywhere. From then on, a process that is killed, silent or stopped by an
    error ends the others, too, within seconds: collectives would wait for ever.

    **Arguments:**

    - `coordinator`: `host:port` where the others find process 0; or PHYSKIT_COORDINATOR.
    - `processes`, `process`: how many there are and which one this is, counted from 0.
    - `wait`: seconds that processes wait for each other.
    - `silence`: seconds without a sign of life after which a process counts as lost.

    **Errors:** `ClusterError` when processes do not come or are not alike, or when JAX has already
    looked for its devices.

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
        "job": f"{info.launcher} {info.port} of {info.process_count}",
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "identity": program_identity(),
    }

    def decide(introductions: list[Message]) -> Message:
        return _jax_coordinator(introductions, info.address)

    channel, answer = open_channel((info.address, info.port), introduction, wait, silence, decide)
    _initialized.append(ProcessGroup(info, channel))
    _report_end(channel)
    try:
        jax.distributed.initialize(
            answer["coordinator"],
            info.process_count,
            info.process_index,
            local_device_ids=_assigned_gpus(info, os.environ),
            # The launcher has been detected above; JAX would detect it by rules of its own.
            cluster_detection_method="deactivate",
            initialization_timeout=max(1, int(wait)),
        )
    except RuntimeError as error:
        if "before" not in str(error):
            raise
        raise ClusterError(
            "physkit.parallel.initialize() must come before anything else that uses JAX: devices that "
            "have been looked for cannot be joined to others any more"
        ) from error
    _restore_sigterm()
    return _initialized[0]


def _restore_sigterm() -> None:
    """Let SIGTERM end a process outside of `run`, too: JAX has just taken it for preemption notices."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # Python still believes in the default; setting it again puts it in place of JAX's handler.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _process_info(
    coordinator: str | None, processes: int | None, process: int | None
) -> ProcessInfo | None:
    if processes is None and process is None:
        environment = dict(os.environ)
        if coordinator is not None:
            environment["PHYSKIT_COORDINATOR"] = coordinator
        return detect_process(environment)
    if coordinator is None or processes is None or process is None:
        raise ClusterError(
            "give coordinator, processes and process together, or none of the last two"
        )
    address, port = split_address(coordinator)
    info = ProcessInfo("the script", process, processes, address, port)
    return info if processes > 1 else None


def program_identity() -> dict[str, str]:
    """What decides whether two processes compile the same programs."""
    script = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path()
    text = script.read_bytes() if script.is_file() else b""
    return {
        **versions(),
        "script": f"{script.name} {hashlib.sha256(text).hexdigest()[:12]}",
    }


def _jax_coordinator(introductions: list[Message], host: str) -> Message:
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
    with socket.socket() as probe:
        probe.bind(("", 0))  # any free port
        return {"coordinator": f"{host}:{probe.getsockname()[1]}"}


def _assigned_gpus(info: ProcessInfo, environment: Mapping[str, str]) -> list[int] | None:
    """Which of the visible GPUs are this process's; None: all of them."""
    visible = [n for n in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if n.strip()]
    if info.local_count == 1 or (visible and len(visible) < info.local_count):
        return None  # alone on its machine, or given its own by the launcher
    per_process, rest = divmod(len(visible), info.local_count)
    if not visible or rest:
        return [info.local_index]
    return list(range(info.local_index * per_process, (info.local_index + 1) * per_process))


def _report_end(channel: ControlChannel) -> None:
    """Report the end of this process to the others: an uncaught error ends them all, a regular end none."""
    excepthook_before = sys.excepthook

    def report_and_exit(
        kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
    ) -> None:
        excepthook_before(kind, error, trace)
        channel.report_failure(re.sub(r"\s+", " ", f"{kind.__name__}: {error}"))
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        # Not through atexit: JAX's shutdown would wait there for the others to come to their end, too.
        os._exit(130 if issubclass(kind, KeyboardInterrupt) else 1)

    sys.excepthook = report_and_exit
    atexit.register(channel.close)
