"""Arrays of the whole domain that meet those of one device's part: said in the words of the domain."""

import contextlib
from collections.abc import Callable, Iterator

import jax

from physkit.core import AbstractSlottedComponent, PhyskitError, ShapeError, State
from physkit.geometry import AXES, Grid

from ..loop._simulation import Simulation
from ._whole_domain import KeyShape, require_works_on_one_device


@contextlib.contextmanager
def explain_shape_errors(
    sim: Simulation,
    devices: tuple[int, ...],
    parts: State,
    whole: Callable[[], tuple[State, KeyShape]],
) -> Iterator[None]:
    """Running `sim` on every device's part of a domain.

    An error of a trace is about parts where a trace of the same simulation on one device has none. That
    second trace is made only after an error.

    - `parts`: the state in device layout; `whole`: the state of the whole domain and the random key.

    **Errors:** `ShapeError` where arrays of the whole domain meet those of a device's part.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(error, PhyskitError) and not isinstance(error, ShapeError):
            raise
        advice = list(_advice(sim, devices, parts))
        if not advice or not _works_on_one_device(sim, whole):
            raise
        first = str(error).strip().splitlines()[0].rstrip(".")
        raise ShapeError(
            f"an array of the whole domain meets one of a device's part: {first}. "
            f"Over devices={devices} {'; '.join(advice)}"
        ) from error


def _works_on_one_device(sim: Simulation, whole: Callable[[], tuple[State, KeyShape]]) -> bool:
    try:
        require_works_on_one_device(sim, *whole())
    except Exception:  # whatever it is: the error is not about parts
        return False
    return True


def _advice(sim: Simulation, devices: tuple[int, ...], parts: State) -> Iterator[str]:
    """What a device has of each thing that is cut, and how to take it."""
    is_cut = lambda x: isinstance(x, Grid | AbstractSlottedComponent)
    found = set()
    for one in jax.tree.leaves((sim, parts), is_leaf=is_cut):
        if isinstance(one, Grid):
            cells = [
                f"{n // p} of the {n} cells along {axis}"
                for n, p, axis in zip(one.shape, devices, AXES, strict=False)
                if p > 1
            ]
            if cells:
                found.add(
                    f"each has {' and '.join(cells)}: take what belongs to them by grid.local(x), and "
                    "shapes from grid.local_shape or grid.local_shape_at(location), not from grid.shape"
                )
        elif isinstance(one, AbstractSlottedComponent) and one.max_slots:
            found.add(one.describe_slots())
    yield from sorted(found)
