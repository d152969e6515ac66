"""What the processes that share a domain must agree on, since they run one program."""

from typing import Any

import numpy as np

from physkit.core import Health
from physkit.parallel import Job, own_rows


def same_health(us: Job, health: Health) -> Health:
    """The faults of all processes, known to each."""
    bits = health.bits if np.ndim(health.bits) == 0 else own_rows(health.bits)[1]
    own = int(np.bitwise_or.reduce(np.asarray(bits), axis=None))
    return Health(np.int32(np.bitwise_or.reduce(us.share(own, "the health of a chunk"))))


def longest(us: Job, seconds: float) -> float:
    """The time that the slowest process took."""
    return max(us.share(seconds, "the time of a chunk"))


def first_said(us: Job, said: Any, what: str) -> Any:
    """What the first process that says anything says; None if none does."""
    return next((one for one in us.share(said, what) if one is not None), None)


def as_the_first(us: Job, said: Any, what: str) -> Any:
    """What process 0 says."""
    return us.share(said, what)[0]
