"""What the processes of a domain must agree on.

They run one program in lockstep. A process that decided otherwise (one chunk more, a cache not grown) would
leave the others waiting in a collective. All functions here are collective, too: every process calls them, in
the same order.
"""

from typing import Any

import numpy as np

from physkit.core import Health
from physkit.parallel import ProcessGroup, addressable_rows


def combine_health(process_group: ProcessGroup, health: Health) -> Health:
    """The faults of all processes, combined."""
    bits = health.bits if np.ndim(health.bits) == 0 else addressable_rows(health.bits)[1]
    local = int(np.bitwise_or.reduce(np.asarray(bits), axis=None))
    every = process_group.all_gather_object(local, "the health of a chunk")
    return Health(np.int32(np.bitwise_or.reduce(every)))


def slowest_process(process_group: ProcessGroup, seconds: float) -> float:
    """The seconds of the slowest process."""
    return max(process_group.all_gather_object(seconds, "the time of a chunk"))


def first_answer(process_group: ProcessGroup, answer: Any, what: str) -> Any:
    """The first answer that is not None, in the order of processes; None if all are."""
    return next(
        (one for one in process_group.all_gather_object(answer, what) if one is not None), None
    )


def broadcast_first(process_group: ProcessGroup, answer: Any, what: str) -> Any:
    """The answer of process 0."""
    return process_group.all_gather_object(answer, what)[0]
