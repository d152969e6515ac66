"""`start`: several processes become one job, or find out at once why they cannot."""

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

from ._control_channel import ControlChannel, open_channel
from ._environment import versions
from ._process_info import ProcessInfo, detect_process, split_address

# What must be the same everywhere, or the processes would compile different programs.
_ALIKE = ("physkit", "jax", "jaxlib", "python", "numpy", "precision", "script")


class ProcessGroup:
    """The processes that run this script together, and this one's place among them.

    - `process`, `processes`: which one this is, and how many there are.
    - `launcher`: who started them: Slurm, Open MPI, Kubernetes, …
    - `names`: what each is called in messages: number, machine, process id.
    """

    def __init__(self, place: ProcessInfo | None, line: ControlChannel | None):
        self._line = line
        self.process = 0 if place is None else place.process
        self.processes = 1 if place is None else place.processes
        self.launcher = None if place is None else place.launcher
        self.names = (
            [f"process 0 ({socket.gethostname()}, {os.getpid()})"] if line is None else line.names
        )

    @property
    def first(self) -> bool:
        """Whether this is the process that speaks for all."""
        return self.process == 0

    def all_gather_object(self, value: Any, what: str) -> list[Any]:
        """What each process says (anything that JSON takes), in their order. All must ask.

        **Errors:** `ClusterError` when they are at different places of the program.
        """
        return [value] if self._line is None else self._line.all_gather_object(value, what)

    def __repr__(self) -> str:
        if self.processes == 1:
            return "Job of one process"
        return f"Job of {self.processes} processes under {self.launcher}, this one {self.process}"


_started: list[ProcessGroup] = []


def process_group() -> ProcessGroup:
    """The job of this process; of one process where `start` was not called, or found no other."""
    return _started[0] if _started else single_process()


def single_process() -> ProcessGroup:
    """A job of this process only, for what each does for itself."""
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
    (`mpirun`) and Kubernetes (indexed Jobs) are recognized; alone, or in the mere allocation of
    `salloc`, it does nothing, so that the same script runs anywhere. Versions, precision and the script
    itself must be the same everywhere. From then on, a process that is killed, silent or stopped by an
    error ends the others, too, within seconds: collectives would wait for ever.

    **Arguments:**

    - `coordinator`: `host:port` where the others find process 0; or PHYSKIT_COORDINATOR.
    - `processes`, `process`: how many there are and which one this is, counted from 0.
    - `wait`: seconds that processes wait for each other.
    - `silence`: seconds after which a process that gives no sign of life counts as lost.

    **Errors:** `ClusterError` when processes do not come or are not alike, or when JAX has already
    looked for its devices.

    **Notes:** on CPU, one process a machine or socket, each with
    XLA_FLAGS=--xla_force_host_platform_device_count=N; on GPU, one a GPU or one a machine. Always
    `srun --kill-on-bad-exit=1`.
    """
    if _started:
        return _started[0]
    place = _place(coordinator, processes, process)
    if place is None:
        _started.append(ProcessGroup(None, None))
        return _started[0]
    me = {
        "process": place.process,
        "processes": place.processes,
        "job": f"{place.launcher} {place.port} of {place.processes}",
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "is": program_identity(),
    }
    address = (place.address, place.port)
    line, word = open_channel(address, me, wait, silence, lambda said: _judged(said, place.address))
    _started.append(ProcessGroup(place, line))
    _leave_loudly(line)
    try:
        jax.distributed.initialize(
            word["coordinator"],
            place.processes,
            place.process,
            local_device_ids=_own_gpus(place, os.environ),
            cluster_detection_method="deactivate",
            initialization_timeout=max(1, int(wait)),
        )
    except RuntimeError as error:
        if "before" not in str(error):
            raise
        raise ClusterError(
            "physkit.parallel.start() must come before anything else that uses JAX: devices that "
            "have been looked for cannot be joined to others any more"
        ) from error
    _end_on_request()
    return _started[0]


def _end_on_request() -> None:
    """SIGTERM ends a process outside of `run`, too: JAX has just taken it for notices of its own."""
    here = threading.current_thread() is threading.main_thread()
    if here and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _place(
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
    place = ProcessInfo("the script", process, processes, address, port)
    return place if processes > 1 else None


def program_identity() -> dict[str, str]:
    """What decides whether two processes compile the same programs."""
    script = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path()
    text = script.read_bytes() if script.is_file() else b""
    return {
        **versions(),
        "script": f"{script.name} {hashlib.sha256(text).hexdigest()[:12]}",
    }


def _judged(said: list[dict[str, Any]], host: str) -> dict[str, Any]:
    """Where to meet for JAX, or why not to."""
    first, found = said[0]["is"], []
    for one in said[1:]:
        own = one["is"]
        found += [
            f"process {one['process']} on {one['host']} has {name} {own.get(name)}, process 0 on "
            f"{said[0]['host']} has {first[name]}"
            for name in _ALIKE
            if own.get(name) != first[name]
        ]
    if found:
        more = f"\n  … and {len(found) - 5} more" if len(found) > 5 else ""
        return {
            "refused": "the processes are not alike, and would compile different programs:\n  "
            + "\n  ".join(found[:5])
            + more
        }
    with socket.socket() as free:
        free.bind(("", 0))
        return {"coordinator": f"{host}:{free.getsockname()[1]}"}


def _own_gpus(place: ProcessInfo, environment: Mapping[str, str]) -> list[int] | None:
    """Which of the GPUs that this process sees are its own; None: all of them."""
    visible = [n for n in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if n.strip()]
    if place.locals == 1 or (visible and len(visible) < place.locals):
        return None  # alone on its machine, or given its own by the launcher
    each, rest = divmod(len(visible), place.locals)
    if not visible or rest:
        return [place.local]
    return list(range(place.local * each, (place.local + 1) * each))


def _leave_loudly(line: ControlChannel) -> None:
    """Make an error here the end of all, in a second, and a good end known as one."""
    before = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
    ) -> None:
        before(kind, error, trace)
        line.fail(re.sub(r"\s+", " ", f"{kind.__name__}: {error}"))
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        # Not by the way out that waits for the others to come to their end, too.
        os._exit(130 if issubclass(kind, KeyboardInterrupt) else 1)

    sys.excepthook = hook
    atexit.register(line.close)
