"""A worker: computes chunks of a sweep that no other worker has claimed, until none are left."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Iterator
from pathlib import Path

from physkit.core import EXIT_INTERRUPTED, EXIT_TRY_AGAIN, ParameterError
from physkit.simulate import StopRequest
from physkit.storage import make_folder

from ..compute._execute import Claim, execute
from ..design._sweep import Sweep
from ..store._sweep_folder import CHUNK_FOLDER, SweepFolder
from ._claims import Claims, describe_quarantined
from ._slurm_queue import current_job, job_seconds_left, record_job, requeue_this_job

_RESERVED_SECONDS = 20.0  # at the end of a job, for writing files and requeueing
_POLL_SECONDS = 0.2  # between two checks whether another worker has written the index


@dataclasses.dataclass(frozen=True)
class WorkerResult:
    """What one worker did.

    - `computed`: numbers of the chunks that it computed.
    - `missing`: those that were not finished when it ended; `claimed_elsewhere`: which of them other
      workers have claimed; `quarantined`: which have killed three workers, so that none tries them again.
    - `stopped_by`: the signal or limit that stopped it. `requeued`: Slurm will start the job again.
      `too_long`: it had neither finished a chunk by then, in most of its time, nor saved one on its way.
    """

    computed: tuple[int, ...]
    missing: tuple[int, ...]
    claimed_elsewhere: tuple[int, ...]
    quarantined: tuple[int, ...]
    stopped_by: str | None
    requeued: bool
    too_long: bool
    seconds: float

    @property
    def exit_status(self) -> int:
        """For `sys.exit`: 0 nothing is left to do here · 1 chunks kill their workers · 75 stopped early, start
        it again · 130 Ctrl-C."""
        if self.stopped_by not in (None, "converged"):
            return EXIT_INTERRUPTED if self.stopped_by == "SIGINT" else EXIT_TRY_AGAIN
        return 1 if self.quarantined else 0

    def __repr__(self) -> str:
        parts = [f"{len(self.computed)} chunks in {self.seconds:.3g} s"]
        if self.stopped_by:
            parts.append(f"stopped ({self.stopped_by})")
        if self.requeued:
            parts.append("back in the queue")
        if self.too_long:
            parts.append(
                "a chunk takes longer than this worker has: give it more time, or smaller chunks"
            )
        if self.missing:
            parts.append(f"{len(self.missing)} missing")
        if self.claimed_elsewhere:
            parts.append(f"{len(self.claimed_elsewhere)} of them claimed by other workers")
        if self.quarantined:
            parts.append(describe_quarantined(self.quarantined))
        return f"WorkerResult({'; '.join(parts)})"


def run_worker(
    sweep: Sweep,
    folder: Path | str,
    *,
    chunk_size: int | None = None,
    worker: tuple[int, int] = (0, 1),
    requeue: bool = False,
    wall_time: float | None = None,
    progress: bool = True,
) -> WorkerResult:
    """Compute the chunks of a sweep that are missing and that no other worker has claimed.

    Any number of workers, on any machines that see the folder, may do so at the same time. A worker that
    ends or is killed can be started again; the others take over the chunk that it had claimed.

    **Arguments:**

    - `chunk_size`: members in a chunk, as `sweep` takes it; what the folder was begun with.
    - `worker`: (k, n), worker k of n: it begins with every n-th chunk from the k-th, so that workers seldom
      compete for one.
    - `requeue`: when Slurm stops it (preemption, time), go back into the queue.
    - `wall_time`: seconds after which no chunk is begun; in Slurm, what is left of the job.

    **Errors:** those of `execute`.
    """
    began = time.monotonic()
    index, num_workers = worker
    if not 0 <= index < num_workers:
        raise ParameterError(f"worker is (k, n) with 0 ≤ k < n; got {worker}")
    StopRequest(wall_time)  # refuses what is no time
    folder = Path(folder)
    SweepFolder(folder).require_unused()
    make_folder(folder / CHUNK_FOLDER)
    claims = Claims(folder / CHUNK_FOLDER)
    # Elements of an array are recorded as their array: one squeue call then covers all of them.
    if job := current_job():
        record_job(folder, str(job["job"]).partition("_")[0])
    # Slurm kills without regard to chunks: the worker must stop by itself, in time to write and requeue.
    job_time = job_seconds_left()
    if job_time is not None:
        limit = max(job_time - _RESERVED_SECONDS, 1.0)
        wall_time = limit if wall_time is None else min(wall_time, limit)
    computed: list[int] = []
    first_round = True
    # Catches signals between two calls of `execute`, which catches those during it.
    with StopRequest() as stop:
        while True:
            seconds_left = None if wall_time is None else wall_time - (time.monotonic() - began)
            with _creating_index(folder, claims):
                sweep_folder = SweepFolder(folder)
                # `execute` without chunks writes the index, and computes nothing.
                if not sweep_folder.exists:
                    execute(sweep, folder, chunk_size=chunk_size, chunks=(), progress=False)
            order = _chunk_order(sweep_folder.num_chunks, index, num_workers)
            result = execute(
                sweep,
                folder,
                chunk_size=chunk_size,
                chunks=order,
                progress=progress,
                wall_time=None if seconds_left is None else max(seconds_left, 0.0),
                claim=_claim_chunk(claims),
                # Each worker checks its own share of what is there, once.
                check=order[: -(-len(order) // num_workers)] if first_round else (),
            )
            first_round = False
            computed += result.computed
            reason = result.stopped_by or stop.reason
            # Claims are read after `execute` has released its own: what is left is held by other workers.
            claimed, quarantined = set(claims.holders()), set(claims.quarantined())
            free = [k for k in result.missing if k not in claimed | quarantined]
            # Chunks that are free again belonged to workers that have died since: another round.
            if reason is not None or not free:
                break
    stopped = reason not in (None, "converged")
    # One that finished and saved nothing in most of its time would not the next time, either: not requeued.
    spent_most = wall_time is not None and time.monotonic() - began > wall_time / 2
    too_long = stopped and spent_most and not computed and not result.saved
    # Ctrl-C is the user's wish to stop: not requeued, either.
    requeued = requeue and stopped and reason != "SIGINT" and not too_long and requeue_this_job()
    return WorkerResult(
        computed=tuple(computed),
        missing=result.missing,
        claimed_elsewhere=tuple(k for k in result.missing if k in claimed),
        quarantined=tuple(k for k in result.missing if k in quarantined),
        stopped_by=reason,
        requeued=requeued,
        too_long=too_long,
        seconds=time.monotonic() - began,
    )


def _chunk_order(num_chunks: int, index: int, num_workers: int) -> list[int]:
    """The chunks of worker `index` first, then those of the other workers, the next one's first."""
    workers = [(index + offset) % num_workers for offset in range(num_workers)]
    return [k for worker in workers for k in range(worker, num_chunks, num_workers)]


def _claim_chunk(claims: Claims) -> Claim:
    """The context in which `execute` computes each chunk; its claim is released when the chunk is finished or
    given up."""

    @contextlib.contextmanager
    def claim(number: int) -> Iterator[bool]:
        if not claims.acquire(number):
            yield False
            return
        # Also after an exception: a chunk whose computation raised is free for others at once.
        try:
            yield True
        finally:
            claims.release(number)

    return claim


@contextlib.contextmanager
def _creating_index(folder: Path, claims: Claims) -> Iterator[None]:
    """One worker at a time, until the index of the sweep exists."""
    # Choosing a chunk size may take seconds of compilation, and two workers may choose differently: the first
    # one writes the index, the others wait for it. However often its holder dies, somebody must write it.
    while not SweepFolder(folder).exists:
        if claims.acquire("sweep", max_deaths=math.inf):
            try:
                yield
            finally:
                claims.release("sweep")
            return
        time.sleep(_POLL_SECONDS)
    yield
