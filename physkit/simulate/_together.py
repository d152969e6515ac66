"""What the processes of a job must agree on, since they run one program: with one, whatever it says."""

from typing import Any

import numpy as np

from physkit.core import Health
from physkit.parallel import job, own_rows


def same_health(health: Health) -> Health:
    """The faults of all processes, known to each."""
    bits = health.bits if np.ndim(health.bits) == 0 else own_rows(health.bits)[1]
    own = int(np.bitwise_or.reduce(np.asarray(bits), axis=None))
    return Health(np.int32(np.bitwise_or.reduce(job().share(own, "the health of a chunk"))))


def longest(seconds: float) -> float:
    """The time that the slowest process took."""
    return max(job().share(seconds, "the time of a chunk"))


def first_said(said: Any, what: str) -> Any:
    """What the first process that says anything says; None if none does."""
    return next((one for one in job().share(said, what) if one is not None), None)


def as_the_first(said: Any, what: str) -> Any:
    """What process 0 says."""
    return job().share(said, what)[0]
