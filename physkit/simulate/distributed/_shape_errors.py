"""Explains shape errors of distributed runs: arrays of the whole domain beside those of a device's part."""

import contextlib
from collections.abc import Callable, Iterator

import jax

from physkit.core import AbstractSlottedComponent, PhyskitError, PyTree, ShapeError, State
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
    """Explain errors of a program that runs `sim` on every device's part of a domain.

    JAX's error names two shapes that do not fit. It is about parts if the same simulation can be traced on
    one device; that second trace is made only after an error.

    - `parts`: the state in device layout. `whole`: returns the state of the whole domain and the random key.

    **Errors:** `ShapeError` where arrays of the whole domain meet those of a device's part.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        # Errors of our own say what is wrong already; those about shapes know nothing of devices.
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
    except Exception:  # any error: the first one was not about parts, and is raised as it is
        return False
    return True


def _advice(sim: Simulation, devices: tuple[int, ...], parts: State) -> Iterator[str]:
    """How much a device has of each sharded grid and component, and how to take the part of an array."""

    def is_sharded(x: PyTree) -> bool:
        return isinstance(x, Grid | AbstractSlottedComponent)

    advice = set()  # several fields may lie on one grid
    for one in jax.tree.leaves((sim, parts), is_leaf=is_sharded):
        if isinstance(one, Grid):
            cells = [
                f"{n // p} of the {n} cells along {axis}"
                for n, p, axis in zip(one.shape, devices, AXES, strict=False)
                if p > 1
            ]
            if cells:
                advice.add(
                    f"each has {' and '.join(cells)}: take what belongs to them by grid.local(x), and "
                    "shapes from grid.local_shape or grid.local_shape_at(location), not from grid.shape"
                )
        elif isinstance(one, AbstractSlottedComponent) and one.max_slots:
            advice.add(one.describe_slots())
    yield from sorted(advice)
