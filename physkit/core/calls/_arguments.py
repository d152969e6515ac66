"""What users' functions are called with beside the state."""

from typing import Any

import jax
import numpy as np

from .._module import as_parameter
from ._concrete import as_device_array


def as_arguments(args: Any) -> Any:
    """`args` of a user's function: plain numbers in them become arrays, by which one can differentiate."""

    def convert(x: Any) -> Any:
        if isinstance(x, bool | int | np.bool_ | np.integer):
            return as_device_array(np.asarray(x))  # of a kind that can be an index
        return as_parameter(x) if isinstance(x, float | complex | np.inexact) else x

    return jax.tree.map(convert, args)
