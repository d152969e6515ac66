"""Engines: who carries out the chunks of a sweep, and how they are set to work."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from physkit.core import MissingExtraError, ParameterError, SweepError
from physkit.parallel import environment_variable
from physkit.simulate import Progress
from physkit.storage import make_folder

from ..compute._execute import merge_partials
from ..design._sweep import Sweep
from ..store._sweep_folder import CHUNKS, LOG, SweepFolder
from ._claims import Claims
from ._slurm_array import SlurmArray
from ._slurm_queue import job_states, record_job
from ._worker import run_worker

_LOOK_AGAIN = 0.5  # seconds between two looks at the folder
_ASK_AGAIN = 15.0  # seconds between two questions to Slurm
_FOREVER = 60 * 24 * 365  # minutes


@dataclasses.dataclass(frozen=True)
class LocalWorkers:
    """Processes on this machine that carry out the chunks of a sweep side by side.

    **Arguments:**

    - `workers`: how many.
    - `gpus`: for each of them; 0: they calculate on processors.

    **Errors:** `ParameterError`.

    **Good values:** one worker for each GPU. On processors: one for large members, which use all cores
    by themselves; one for each core for small ones.
    """

    workers: int = 2
    gpus: int = 0

    def __post_init__(self):
        if self.workers < 1 or self.gpus < 0:
            raise ParameterError(
                f"LocalWorkers needs workers ≥ 1 and gpus ≥ 0; got {self.workers} and {self.gpus}"
            )


@dataclasses.dataclass
class WorkerTask:
    """What one worker is given: a sweep or the case that makes it, its folder, and its share."""

    source: Any
    folder: Path
    chunk: int | None
    share: tuple[int, int]
    requeue: bool

    def __call__(self) -> int:
        """Work; the exit status."""
        made = self.source() if callable(self.source) else self.source
        done = run_worker(
            made, self.folder, chunk=self.chunk, share=self.share, requeue=self.requeue
        )
        return done.exit_status


class SubmittedWorkers:
    """Workers that were set to work on a sweep. They go on if this process ends.

    - `folder`: where they write. `jobs`: their numbers, as the scheduler or the system calls them.
    """

    def __init__(self, folder: Path, handles: Sequence[Any], on_slurm: bool):
        self.folder, self._handles, self._on_slurm = folder, tuple(handles), on_slurm
        self._asked, self._alive = -_ASK_AGAIN, True
        self.jobs = tuple(str(handle.job_id) for handle in handles)

    def is_alive(self) -> bool:
        """Whether any of them is running or queued. Slurm is asked every fifteen seconds at most."""
        if not self._on_slurm:
            return any(not handle.done() for handle in self._handles)
        if time.monotonic() - self._asked > _ASK_AGAIN:
            found = job_states({job.partition("_")[0] for job in self.jobs})
            self._asked, self._alive = time.monotonic(), found is None or bool(found)
        return self._alive

    def cancel(self) -> None:
        """End them: chunks in hand are lost, others stay."""
        for handle in self._handles:
            handle.cancel(check=False)

    def wait(self, progress: Progress | None = None) -> bool:
        """Wait until all chunks are there, or nobody works any more; whether all are there."""
        found = SweepFolder(self.folder)
        while True:
            alive = self.is_alive()  # before the look: what the last one wrote is seen
            done = len(found.done())
            if progress is not None and found.exists:
                progress.total = found.chunks
                progress.update(done)
            complete = found.exists and done == found.chunks
            # Processes of this machine are waited for to their end, or they would be left behind.
            if not alive or (complete and self._on_slurm):
                return complete
            time.sleep(_LOOK_AGAIN)

    def __repr__(self) -> str:
        where = "Slurm job" if self._on_slurm else "process"
        return f"Submitted({where} {', '.join(self.jobs)}; {self.folder})"


def submit(
    source: Any,
    folder: Path | str,
    engine: SlurmArray | LocalWorkers,
    *,
    chunk: int | None = None,
) -> SubmittedWorkers:
    """Set workers to work on a sweep, and come back at once. What they have done can be looked at with
    `status` and `pk.open` at any time. Calling it again sends workers for what is missing.

    **Arguments:**

    - `source`: a `Sweep`, or a function that returns one, which every worker calls. It is sent to the
      workers as submitit does it, with the functions that it is made of.
    - `folder`: of the sweep, which all workers see under this name.
    - `engine`: `SlurmArray(…)` or `LocalWorkers(…)`.
    - `chunk`: members in a chunk, as `sweep` takes it.

    **Errors:** `MissingExtraError` without the extra `physkit[cluster]`, `SweepError` where there is no
    Slurm, `FileError` for a folder of another sweep.
    """
    submitit = _submitit()
    folder = Path(folder).resolve()
    if isinstance(source, Sweep) and SweepFolder(folder).exists:
        SweepFolder(folder).require_same_sweep(source)
    SweepFolder(folder).require_unused()
    log = folder / LOG
    make_folder(log)
    make_folder(folder / CHUNKS)
    Claims(folder / CHUNKS).release_stale()
    count = engine.elements if isinstance(engine, SlurmArray) else engine.workers
    on_slurm = isinstance(engine, SlurmArray)
    elements = [
        WorkerTask(source, folder, chunk, (k, count), on_slurm and engine.requeue)
        for k in range(count)
    ]
    with _precision_for_children() as double:
        if isinstance(engine, SlurmArray):
            handles = _slurm(submitit, engine, log, folder.name, double, elements)
            record_job(folder, str(handles[0].job_id).partition("_")[0])
        else:
            handles = [_local(submitit, engine, log, k, one) for k, one in enumerate(elements)]
    return SubmittedWorkers(folder, handles, on_slurm)


def execute_with_workers(
    engine: SlurmArray | LocalWorkers,
    sweep: Sweep,
    folder: Path | str,
    *,
    chunk: int | None = None,
    progress: bool = True,
) -> str | None:
    """Set workers to work on a sweep, and wait for the last one. Says why it ended early, if it did.

    Ctrl-C stops the waiting and, on this machine, the workers, which end the chunk in hand if that takes
    no more than seconds. Workers on this machine that were killed are started again.

    **Errors:** those of `submit`; `SweepError` when nobody works any more and chunks are missing.
    """
    bar = Progress(1, unit="chunks", enabled=progress)
    found, tried, enough = SweepFolder(folder), -1, sweep.stop_when is not None
    while True:
        sent = submit(sweep, folder, engine, chunk=chunk)
        bar.say(repr(sent))
        if sent.wait(bar):
            bar.close()
            return None
        bar.close()
        done = len(found.done())
        if enough and found.exists and _has_converged(sweep, found):
            return "converged"
        if isinstance(engine, SlurmArray) or done <= tried:
            raise SweepError(
                f"{folder}: {done} chunks of {found.chunks if found.exists else 'all'} are there, and no "
                f"worker is left. {Path(folder) / LOG} says what went wrong; the same call goes on"
            )
        tried = done


def _slurm(
    submitit: Any, engine: SlurmArray, log: Path, name: str, double: str, elements: list[WorkerTask]
) -> list[Any]:
    try:
        executor = submitit.SlurmExecutor(folder=log)
    except RuntimeError as error:
        raise SweepError(
            f"no Slurm here ({error}): submit from a login node, or send it the script that "
            "`physkit sweep script` writes; LocalWorkers(…) works on this machine"
        ) from error
    asked = engine.directives(f"sweep-{name}")
    executor.update_parameters(
        job_name=asked.pop("job-name"),
        time=engine.minutes,
        array_parallelism=engine.at_once or engine.elements,
        setup=[f"export JAX_ENABLE_X64={double}", *engine.setup],
        stderr_to_stdout=True,
        wckey=None,
        additional_parameters={k: v or True for k, v in asked.items()},
    )
    utils = submitit.core.utils
    try:
        return executor.submit_array(elements)
    except (utils.FailedJobError, utils.FailedSubmissionError) as error:
        raise SweepError(f"sbatch refused the job: {error}") from error


def _local(submitit: Any, engine: LocalWorkers, log: Path, number: int, element: WorkerTask) -> Any:
    executor = submitit.LocalExecutor(folder=log)
    first = number * engine.gpus
    executor.update_parameters(
        timeout_min=_FOREVER,
        gpus_per_node=engine.gpus,
        visible_gpus=tuple(range(first, first + engine.gpus)),
        stderr_to_stdout=True,
    )
    return executor.submit(element)


def _has_converged(sweep: Sweep, folder: SweepFolder) -> bool:
    parts = {number: folder.load(number).reduced for number in folder.done()}
    return sweep.stop_when is not None and sweep.stop_when.is_met(
        merge_partials(sweep.reduce, parts)
    )


@contextlib.contextmanager
def _precision_for_children() -> Iterator[str]:
    """Children read JAX_ENABLE_X64 when they import JAX: it says what holds here. Gives 1 or 0."""
    double = "1" if jnp.zeros(()).dtype == jnp.float64 else "0"
    with environment_variable("JAX_ENABLE_X64", double):
        yield double


def _submitit() -> Any:
    try:
        # Its import would configure logging anew, and close what others log to.
        with environment_variable("SUBMITIT_LOG_LEVEL", "NOCONFIG"):
            import submitit  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtraError(
            "engines 'slurm' and 'local' send sweeps to their workers with submitit: "
            "pip install 'physkit[cluster]'. Without it: `physkit sweep script case.py --to out` writes a "
            "job script, and `physkit sweep run case.py --to out --workers 2` needs nothing else"
        ) from error
    return submitit
