"""Engines: start workers for a sweep, on this machine or on Slurm, and wait for them."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from physkit.core import MissingExtraError, ParameterError, SweepError, as_count, explain_class
from physkit.parallel import environment_variable
from physkit.simulate import Progress
from physkit.storage import make_folder

from ..design._sweep import Sweep
from ..statistics._reductions import merge_partials
from ..store._sweep_folder import CHUNK_FOLDER, LOG_FOLDER, SweepFolder
from ._claims import Claims
from ._slurm_array import SlurmArray
from ._slurm_queue import job_states, record_job
from ._worker import run_worker

_POLL_SECONDS = 0.5  # between two listings of the folder
_SLURM_POLL_SECONDS = 15.0  # between two calls of squeue
_NO_TIMEOUT = 60 * 24 * 365  # minutes; submitit asks for a limit


@explain_class
@dataclasses.dataclass(frozen=True)
class LocalWorkers:
    """Processes on this machine that compute the chunks of a sweep side by side.

    **Arguments:**

    - `workers`: how many.
    - `gpus`: for each of them, of those that `CUDA_VISIBLE_DEVICES` names, if it is set; 0: they compute on
      processors.

    **Errors:** `ParameterError`.

    **Good values:** one worker for each GPU. On processors: one for large members, which use all cores
    by themselves; one for each core for small ones.
    """

    workers: int = 2
    gpus: int = 0

    def __post_init__(self):
        object.__setattr__(self, "workers", as_count(self.workers, "workers", ParameterError))
        if self.gpus != 0:  # also of a worker without one
            object.__setattr__(self, "gpus", as_count(self.gpus, "gpus", ParameterError))


@dataclasses.dataclass
class WorkerTask:
    """The task of one worker; submitit pickles it, and calls it in the worker's process.

    - `source`: a sweep, or a function that makes it. `worker`: (k, n), worker k of n.
    """

    source: Sweep | Callable[[], Sweep]
    folder: Path
    chunk_size: int | None
    worker: tuple[int, int]
    requeue: bool

    def __call__(self) -> int:
        """Run the worker; its exit status."""
        sweep = self.source() if callable(self.source) else self.source
        result = run_worker(
            sweep,
            self.folder,
            chunk_size=self.chunk_size,
            worker=self.worker,
            requeue=self.requeue,
        )
        return result.exit_status


class SubmittedWorkers:
    """Workers that compute a sweep. They go on if this process ends.

    - `folder`: where they write. `jobs`: their numbers, as Slurm or the operating system calls them.
    """

    def __init__(self, folder: Path, handles: Sequence[Any], on_slurm: bool):
        self.folder, self._handles, self._on_slurm = folder, tuple(handles), on_slurm
        self._asked_at, self._alive = -_SLURM_POLL_SECONDS, True
        self.jobs = tuple(str(handle.job_id) for handle in handles)

    def is_alive(self) -> bool:
        """Whether any of them is running or queued. Slurm is asked every fifteen seconds at most."""
        if not self._on_slurm:
            return any(not handle.done() for handle in self._handles)
        if time.monotonic() - self._asked_at > _SLURM_POLL_SECONDS:
            states = job_states({job.partition("_")[0] for job in self.jobs})
            # Without an answer they are taken to be alive: to give up would abandon jobs that are running.
            self._asked_at, self._alive = time.monotonic(), states is None or bool(states)
        return self._alive

    def cancel(self) -> None:
        """End them: finished chunks stay, and so does what has been saved of those that they are computing."""
        for handle in self._handles:
            handle.cancel(check=False)

    def wait(self, progress: Progress | None = None) -> bool:
        """Wait until all chunks are finished, or no worker is alive; whether all are finished."""
        sweep_folder = SweepFolder(self.folder)
        while True:
            # Asked before files are listed, so that the last chunk of the last worker is seen.
            alive = self.is_alive()
            finished = len(sweep_folder.finished_chunks())
            if progress is not None and sweep_folder.exists:
                progress.total = sweep_folder.num_chunks
                progress.update(finished)
            complete = sweep_folder.exists and finished == sweep_folder.num_chunks
            # Local processes are waited for to their end: as children they would be left as zombies.
            if not alive or (complete and self._on_slurm):
                return complete
            time.sleep(_POLL_SECONDS)

    def __repr__(self) -> str:
        where = "Slurm job" if self._on_slurm else "process"
        return f"SubmittedWorkers({where} {', '.join(self.jobs)}; {self.folder})"


def submit(
    source: Sweep | Callable[[], Sweep],
    folder: Path | str,
    engine: SlurmArray | LocalWorkers,
    *,
    chunk_size: int | None = None,
) -> SubmittedWorkers:
    """Start workers for a sweep, and return at once. `status` and `pk.open` show at any time what they have
    done. Another call starts workers for what is missing.

    **Arguments:**

    - `source`: a `Sweep`, or a function that returns one, which every worker calls. submitit pickles it,
      with the functions that it is made of.
    - `folder`: of the sweep, which all workers see under this name.
    - `engine`: `SlurmArray(…)` or `LocalWorkers(…)`.
    - `chunk_size`: members in a chunk, as `sweep` takes it.

    **Errors:** `MissingExtraError` without the extra `physkit[cluster]`, `SweepError` where there is no
    Slurm, `FileError` for a folder of another sweep, `ParameterError` for more GPUs than this process may use.
    """
    submitit = _import_submitit()
    folder = Path(folder).resolve()
    # Errors are raised here, where the user reads them, not in the log of a job.
    gpus = _gpus_of_workers(engine) if isinstance(engine, LocalWorkers) else []
    if isinstance(source, Sweep) and SweepFolder(folder).exists:
        SweepFolder(folder).require_same_sweep(source)
    SweepFolder(folder).require_unused()
    log = folder / LOG_FOLDER
    make_folder(log)
    make_folder(folder / CHUNK_FOLDER)
    # A new submission gives quarantined chunks another chance.
    Claims(folder / CHUNK_FOLDER).release_stale()
    count = engine.elements if isinstance(engine, SlurmArray) else engine.workers
    on_slurm = isinstance(engine, SlurmArray)
    tasks = [
        WorkerTask(source, folder, chunk_size, (k, count), on_slurm and engine.requeue)
        for k in range(count)
    ]
    with _precision_for_children() as double:
        if isinstance(engine, SlurmArray):
            handles = _submit_array(submitit, engine, log, folder.name, double, tasks)
            # Recorded at once, so that `status` shows jobs that are still queued.
            record_job(folder, str(handles[0].job_id).partition("_")[0])
        else:
            handles = [
                _start_local(submitit, log, one, t) for one, t in zip(gpus, tasks, strict=True)
            ]
    return SubmittedWorkers(folder, handles, on_slurm)


def execute_with_workers(
    engine: SlurmArray | LocalWorkers,
    sweep: Sweep,
    folder: Path | str,
    *,
    chunk_size: int | None = None,
    progress: bool = True,
) -> str | None:
    """Start workers for a sweep, and wait for the last one. Returns why it ended early, if it did.

    Ctrl-C stops the waiting and, on this machine, the workers, which finish their current chunk if that
    takes no more than seconds, and else save it. Workers on this machine that were killed are started again.

    **Errors:** those of `submit`; `SweepError` when no worker is left and chunks are missing.
    """
    bar = Progress(1, unit="chunks", enabled=progress)
    sweep_folder = SweepFolder(folder)
    finished_before = len(sweep_folder.finished_chunks())
    while True:
        workers = submit(sweep, folder, engine, chunk_size=chunk_size)
        bar.write_line(repr(workers))
        if workers.wait(bar):
            bar.close()
            return None
        bar.close()
        finished = len(sweep_folder.finished_chunks())
        # Workers also end early, with chunks missing, where the stopping rule is met.
        if sweep_folder.exists and _has_converged(sweep, sweep_folder):
            return "converged"
        # Local workers are started again as long as each round finishes another chunk.
        if isinstance(engine, SlurmArray) or finished <= finished_before:
            total = sweep_folder.num_chunks if sweep_folder.exists else "all"
            raise SweepError(
                f"{folder}: {finished} of {total} chunks are finished, and no worker is left. "
                f"{Path(folder) / LOG_FOLDER} says what went wrong; the same call goes on"
            )
        finished_before = finished


def _submit_array(
    submitit: Any, engine: SlurmArray, log: Path, name: str, double: str, tasks: list[WorkerTask]
) -> list[Any]:
    """Submit a job array; submitit's handles of its elements."""
    try:
        executor = submitit.SlurmExecutor(folder=log)
    except RuntimeError as error:
        raise SweepError(
            f"no Slurm here ({error}): submit from a login node, or send it the script that "
            "`physkit sweep script` writes; LocalWorkers(…) works on this machine"
        ) from error
    directives = engine.directives(f"sweep-{name}")
    executor.update_parameters(
        job_name=directives.pop("job-name"),
        time=engine.minutes,
        # submitit has a limit of its own by default, of 256 jobs at a time.
        array_parallelism=engine.max_running or engine.elements,
        setup=[f"export JAX_ENABLE_X64={double}", *engine.setup],
        stderr_to_stdout=True,
        wckey=None,  # submitit would otherwise set one, which some clusters refuse
        # submitit writes a value of True as an option without a value, such as --requeue.
        additional_parameters={k: v or True for k, v in directives.items()},
    )
    utils = submitit.core.utils
    try:
        return executor.submit_array(tasks)
    except (utils.FailedJobError, utils.FailedSubmissionError) as error:
        raise SweepError(f"sbatch refused the job: {error}") from error


def _gpus_of_workers(engine: LocalWorkers) -> list[tuple[int, ...]]:
    """Numbers of the GPUs of each worker, of those that this process may use.

    **Errors:** `ParameterError` where `CUDA_VISIBLE_DEVICES` names too few, or not by their numbers.
    """
    count = engine.workers * engine.gpus
    visible, chosen = range(count), os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None and count:
        names = [name.strip() for name in chosen.split(",") if name.strip() not in ("", "-1")]
        if len(names) < count or not all(name.isdecimal() for name in names):
            raise ParameterError(
                f"LocalWorkers(workers={engine.workers}, gpus={engine.gpus}) needs the numbers of {count} "
                f"GPUs; CUDA_VISIBLE_DEVICES of this process is {chosen!r:.80}"
            )
        visible = [int(name) for name in names]
    return [tuple(visible[k * engine.gpus : (k + 1) * engine.gpus]) for k in range(engine.workers)]


def _start_local(submitit: Any, log: Path, gpus: tuple[int, ...], task: WorkerTask) -> Any:
    """Start one process; submitit's handle of it."""
    executor = submitit.LocalExecutor(folder=log)
    # Each process sees GPUs of its own: JAX would otherwise reserve memory on all of them.
    executor.update_parameters(
        timeout_min=_NO_TIMEOUT,
        gpus_per_node=len(gpus),
        visible_gpus=gpus,
        stderr_to_stdout=True,
    )
    return executor.submit(task)


def _has_converged(sweep: Sweep, folder: SweepFolder) -> bool:
    if sweep.stop_when is None:
        return False
    partials = {number: folder.load(number).reduced for number in folder.finished_chunks()}
    return sweep.stop_when.is_met(merge_partials(sweep.reduce, partials))


@contextlib.contextmanager
def _precision_for_children() -> Iterator[str]:
    """Set JAX_ENABLE_X64, which children read when they import JAX, to the precision of this process."""
    double = "1" if jnp.zeros(()).dtype == jnp.float64 else "0"
    with environment_variable("JAX_ENABLE_X64", double):
        yield double


def _import_submitit() -> Any:
    try:
        # By default its import reconfigures logging, and closes the handlers of others.
        with environment_variable("SUBMITIT_LOG_LEVEL", "NOCONFIG"):
            import submitit  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtraError(
            "engines 'slurm' and 'local' send sweeps to their workers with submitit: "
            "pip install 'physkit[cluster]'. Without it: `physkit sweep script case.py --to out` writes a "
            "job script, and `physkit sweep run case.py --to out --workers 2` needs nothing else"
        ) from error
    return submitit
