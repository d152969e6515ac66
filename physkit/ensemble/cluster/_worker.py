"""A worker: carries out chunks of a sweep that nobody else has in hand, until none are left."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Iterator
from pathlib import Path

from physkit.core import EXIT_INTERRUPTED, EXIT_TRY_AGAIN, ParameterError
from physkit.simulate import StopRequest
from physkit.storage import make_folder

from ..compute._execute import execute
from ..design._sweep import Sweep
from ..store._sweep_folder import CHUNKS, SweepFolder
from ._claims import Claims
from ._slurm_queue import (
    current_job,
    job_seconds_left,
    record_job,
    requeue_this_job,
)

_BEFORE_THE_END = 20.0  # seconds of a job that are left for writing and going back into the queue
_WAIT = 0.2


@dataclasses.dataclass(frozen=True)
class WorkerResult:
    """What one worker did.

    - `computed`: numbers of the chunks that it carried out.
    - `left`: those that were not there when it ended; `elsewhere`: which of them others have in hand;
      `deadly`: which have ended three workers, so that none tries them again.
    - `stopped_by`: the signal or limit that stopped it. `requeued`: Slurm will start the job again.
      `too_long`: it had not got a single chunk done by then, in most of its time.
    """

    computed: tuple[int, ...]
    left: tuple[int, ...]
    claimed_elsewhere: tuple[int, ...]
    quarantined: tuple[int, ...]
    stopped_by: str | None
    requeued: bool
    too_long: bool
    seconds: float

    @property
    def exit_status(self) -> int:
        """For `sys.exit`: 0 nothing is left to do here · 1 chunks end their workers · 75 stopped early, start
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
                "a chunk takes longer than the time that there is: give more, or smaller chunks"
            )
        if self.left:
            parts.append(f"{len(self.left)} not there yet")
        if self.claimed_elsewhere:
            parts.append(f"{len(self.claimed_elsewhere)} in other hands")
        if self.quarantined:
            shown = ", ".join(map(str, self.quarantined[:5]))
            parts.append(
                f"{len(self.quarantined)} have ended three workers each and are left out ({shown})"
            )
        return f"Worked({'; '.join(parts)})"


def run_worker(
    sweep: Sweep,
    folder: Path | str,
    *,
    chunk: int | None = None,
    share: tuple[int, int] = (0, 1),
    requeue: bool = False,
    wall_time: float | None = None,
    progress: bool = True,
) -> WorkerResult:
    """Carry out the chunks of a sweep that are missing and that no other worker has in hand.

    Any number of workers, on any machines that see the folder, may do so at the same time. Whoever ends
    or is killed can be started again; what it had in hand is taken over by those that still work.

    **Arguments:**

    - `chunk`: members in a chunk, as `sweep` takes it; what the folder was begun with.
    - `share`: (k, n): begin with every n-th chunk from the k-th, so that n workers seldom meet.
    - `requeue`: when Slurm stops it (preemption, time), go back into the queue.
    - `wall_time`: seconds after which no chunk is begun; in Slurm, what is left of the job.

    **Errors:** those of `execute`.
    """
    began = time.monotonic()
    number, of = share
    if not 0 <= number < of:
        raise ParameterError(f"share is (k, n) with 0 ≤ k < n; got {share}")
    folder = Path(folder)
    SweepFolder(folder).require_unused()
    make_folder(folder / CHUNKS)
    claims = Claims(folder / CHUNKS)
    if job := current_job():
        record_job(folder, str(job["job"]).partition("_")[0])
    left_of_job = job_seconds_left()
    if left_of_job is not None:
        end = max(left_of_job - _BEFORE_THE_END, 1.0)
        wall_time = end if wall_time is None else min(wall_time, end)
    computed: list[int] = []
    with StopRequest() as between:
        while True:
            left = None if wall_time is None else wall_time - (time.monotonic() - began)
            with _beginning(folder, claims):
                found = SweepFolder(folder)
                # Nothing is computed by this: it makes the index, where there is none.
                if not found.exists:
                    execute(sweep, folder, chunk=chunk, chunks=(), progress=False)
            order = _order(found.chunks, number, of)
            did = execute(
                sweep,
                folder,
                chunk=chunk,
                chunks=order,
                progress=progress,
                wall_time=None if left is None else max(left, 0.0),
                claim=_claiming(claims),
            )
            computed += did.computed
            reason = did.stopped_by or between.reason
            taken, deadly = set(claims.holders()), set(claims.quarantined())
            free = [k for k in did.left if k not in taken | deadly]
            if reason is not None or not free:
                break
    stopped = reason not in (None, "converged")
    # Who got nothing done in most of the time that there was would not the next time, either.
    spent = wall_time is not None and time.monotonic() - began > wall_time / 2
    too_long = stopped and spent and not computed
    again = requeue and stopped and reason != "SIGINT" and not too_long and requeue_this_job()
    return WorkerResult(
        computed=tuple(computed),
        left=did.left,
        claimed_elsewhere=tuple(k for k in did.left if k in taken),
        quarantined=tuple(k for k in did.left if k in deadly),
        stopped_by=reason,
        requeued=again,
        too_long=too_long,
        seconds=time.monotonic() - began,
    )


def _order(chunks: int, number: int, component: int) -> list[int]:
    """Its own share first, then the shares of the others, the next one's first."""
    return [
        k
        for offset in range(component)
        for k in range((number + offset) % component, chunks, component)
    ]


def _claiming(claims: Claims):
    @contextlib.contextmanager
    def claim(number: int) -> Iterator[bool]:
        if not claims.acquire(number):
            yield False
            return
        try:
            yield True
        finally:
            claims.release(number)

    return claim


@contextlib.contextmanager
def _beginning(folder: Path, claims: Claims) -> Iterator[None]:
    """One worker at a time, until the sweep has been begun."""
    while not SweepFolder(folder).exists:
        if claims.acquire("sweep", most_deaths=math.inf):
            try:
                yield
            finally:
                claims.release("sweep")
            return
        time.sleep(_WAIT)
    yield
