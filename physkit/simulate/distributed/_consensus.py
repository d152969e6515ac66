"""What the processes that share a domain must agree on, since they run one program."""

from typing import Any

import numpy as np

from physkit.core import Health
from physkit.parallel import ProcessGroup, addressable_rows


def combine_health(us: ProcessGroup, health: Health) -> Health:
    """The faults of all processes, known to each."""
    bits = health.bits if np.ndim(health.bits) == 0 else addressable_rows(health.bits)[1]
    own = int(np.bitwise_or.reduce(np.asarray(bits), axis=None))
    return Health(
        np.int32(np.bitwise_or.reduce(us.all_gather_object(own, "the health of a chunk")))
    )


def slowest_process(us: ProcessGroup, seconds: float) -> float:
    """The time that the slowest process took."""
    return max(us.all_gather_object(seconds, "the time of a chunk"))


def first_answer(us: ProcessGroup, said: Any, what: str) -> Any:
    """What the first process that says anything says; None if none does."""
    return next((one for one in us.all_gather_object(said, what) if one is not None), None)


def broadcast_first(us: ProcessGroup, said: Any, what: str) -> Any:
    """What process 0 says."""
    return us.all_gather_object(said, what)[0]
