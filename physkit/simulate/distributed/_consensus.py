"""What the processes that share a domain must agree on, since they run one program."""

from typing import Any

import numpy as np

from physkit.core import Health
from physkit.parallel import ProcessGroup, addressable_rows


def combine_health(process_group: ProcessGroup, health: Health) -> Health:
    """The faults of all processes, combined."""
    bits = health.bits if np.ndim(health.bits) == 0 else addressable_rows(health.bits)[1]
    own = int(np.bitwise_or.reduce(np.asarray(bits), axis=None))
    return Health(
        np.int32(
            np.bitwise_or.reduce(process_group.all_gather_object(own, "the health of a chunk"))
        )
    )


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
