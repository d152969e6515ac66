"""The numbers of a state as NumPy arrays."""

from typing import Any

from physkit.core import State, explain_call, numbers_by_name


@explain_call
def to_numpy(state: State) -> Any:
    """The numbers of a state, a field, particles, or any part of a simulation, as NumPy arrays by name.

        numbers = pk.interop.to_numpy(atoms)  # or atoms.to_numpy()
        numbers["velocity"], numbers["space"]["lengths"]

    Parts become dicts of their fields, and so do parts of parts; dicts, tuples and lists stay what they are.
    What holds no number is left out. Random keys are their words.

    One array needs nothing of this: `numpy.asarray(atoms.position)`. Back, constructors take NumPy arrays:
    `pk.Particles(position, velocity)`, `pk.Field(data, grid)`.

    **Errors:** `DeclarationError` for traced values, inside of `jit`, `grad` or `vmap`.
    """
    return numbers_by_name(state)
