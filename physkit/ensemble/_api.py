"""`sweep`: compute a sweep, in this process or by workers."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax
import numpy as np
from numpy.typing import ArrayLike

from physkit.core import Count, KeyLike, ParameterError, PyTree, as_count, explain_call

from .cluster._launch import LocalWorkers, execute_with_workers
from .cluster._slurm_array import SlurmArray
from .compute._execute import execute
from .compute._sweep_progress import SweepProgress
from .design._retry import Retry
from .design._sweep import Sweep
from .design._sweep_axes import Design, SweepAxis
from .statistics._convergence import Converged
from .statistics._reductions import AbstractReduction
from .store._collect import collect, collect_from
from .store._ensemble import Ensemble
from .store._memory_store import MemoryStore


@explain_call
def sweep(
    model: Sweep | PyTree,
    steps: Count | None = None,
    *,
    over: SweepAxis | Design | Sequence[SweepAxis | Design] | None = None,
    replicas: Count = 1,
    key: KeyLike | None = None,
    reduce: AbstractReduction | Sequence[AbstractReduction] = (),
    keep: bool | Sequence[str] = True,
    retry: Retry | None = None,
    cost: ArrayLike | Callable[[Mapping[str, np.ndarray]], ArrayLike] | None = None,
    stop_when: Converged | None = None,
    groups: Sequence[str] | None = None,
    domain: Sequence[int] | int | None = None,
    to: str | Path | None = None,
    chunk_size: Count | None = None,
    engine: str | LocalWorkers | SlurmArray = "inline",
    devices: Sequence[jax.Device] | None = None,
    progress: bool = True,
    on_chunk: Callable[[SweepProgress], object] | None = None,
    wall_time: float | None = None,
) -> Ensemble:
    """Compute many simulations that differ in some numbers, many at a time.

        sweep((simulation, state), 1000, over=SweepAxis(lambda m: m[0].dt, [0.01, 0.02]))

    The unit of work, memory, files and resumption is a chunk of members: advanced together on all local
    devices, written as one file that exists if and only if it is complete; one that takes long is saved beside
    it, every half a minute. A sweep that is killed and started again computes what is missing, and has the same
    bits as an uninterrupted one with the same `chunk_size` and devices. A member that fails is flagged and
    leaves the others alone.

    **Arguments:**

    - `model`, `steps`, `over`, …, `domain`: as of `Sweep`; or a `Sweep` alone.
    - `to`: a folder; without one everything stays in memory. A folder of the same sweep is continued, that
      of another refused.
    - `chunk_size`: members in a chunk; as many as memory holds if left out.
    - `engine`: `"inline"`, in this process; `"local"` or `LocalWorkers(…)`, in several on this machine;
      `"slurm"` or `SlurmArray(…)`, a job array. These need a folder, and wait until all is done.
    - `devices`: of this process; all local ones if left out.
    - `on_chunk`: a function that is called with a `SweepProgress` – the new members, how many are done – after
      each chunk that this process computes.
    - `wall_time`: seconds after which it stops; call again to go on.

    **Errors:** those of `Sweep`; `MismatchError` for the folder of another sweep, `CapacityError` where one
    member does not fit on a device.
    """
    if chunk_size is not None:
        chunk_size = as_count(chunk_size, "chunk_size", ParameterError)
    if isinstance(model, Sweep):
        # Refused, not ignored: this sweep was built without them, and its digest does not cover them.
        given = (steps, over, key, retry, cost, stop_when, groups, domain)
        if any(x is not None for x in given) or replicas != 1 or reduce != () or keep is not True:
            raise ParameterError(
                "a Sweep already holds these arguments: give it alone, with to=, chunk_size=, …"
            )
        definition = model
    else:
        if steps is None:
            raise ParameterError("steps are missing: sweep((simulation, state), steps, over=…)")
        definition = Sweep(
            model,
            steps,
            over=over,
            replicas=replicas,
            key=key,
            reduce=reduce,
            keep=keep,
            retry=retry,
            cost=cost,
            stop_when=stop_when,
            groups=groups,
            domain=domain,
        )
    names = {"inline": None, "local": LocalWorkers(), "slurm": SlurmArray()}
    if isinstance(engine, LocalWorkers | SlurmArray):
        workers = engine
    elif isinstance(engine, str) and engine in names:
        workers = names[engine]
    else:
        raise ParameterError(
            f"engine is one of {list(names)}, LocalWorkers(…) or SlurmArray(…); got {engine!r:.80}"
        )
    if workers is not None:
        if to is None or any(x is not None for x in (devices, wall_time, on_chunk)):
            raise ParameterError(
                "workers need a folder (to=), use the devices that they find, SlurmArray(minutes=…) limits "
                "their time, and they call no function of this process: give to=, and neither devices= nor "
                "wall_time= nor on_chunk="
            )
        # The stopping reason is of this call only: it is not stored in the folder.
        reason = execute_with_workers(
            workers, definition, to, chunk_size=chunk_size, progress=progress
        )
        ensemble = collect(to, definition)
        ensemble.stopped_by = reason
        return ensemble
    store = MemoryStore() if to is None else to
    result = execute(
        definition,
        store,
        chunk_size=chunk_size,
        devices=devices,
        progress=progress,
        wall_time=wall_time,
        on_chunk=on_chunk,
    )
    if isinstance(store, MemoryStore):
        ensemble = collect_from(store, definition.reduce)
    else:
        ensemble = collect(store, definition)
    ensemble.stopped_by = result.stopped_by
    return ensemble
