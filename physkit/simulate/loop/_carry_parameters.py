"""Which parameters made a carry, so that one that goes on with the same ones is taken as it is."""

import equinox as eqx
import jax
import numpy as np

from physkit.core import PyTree, is_random_key

from ._array_notes import ArrayNotes
from ._carry import Carry
from ._simulation import Simulation

_known: ArrayNotes[PyTree] = ArrayNotes()  # parameters, by what they have made


def remember_parameters(sim: Simulation, carry: Carry) -> None:
    """Note that forces and lists of `carry` were made by the parameters of `sim` (host only)."""
    arrays = [x for x in jax.tree.leaves(_made(carry)) if eqx.is_array(x)]
    if not jax.tree.leaves(carry.aux) or not all(isinstance(x, jax.Array) for x in arrays):
        return  # nothing that parameters make, or numbers that could be changed in place
    _known.add(_made(carry), _parameters(sim))


def has_parameters_of(sim: Simulation, carry: Carry) -> bool:
    """Whether the parameters of `sim` are known to have made forces and lists of `carry` (host only).

    Compared on the host, number by number: no program. False where nothing is known, as of a carry from a file.
    """
    if not jax.tree.leaves(carry.aux):
        return True
    known = _known.find(_made(carry))
    if known is None:
        return False
    (old, old_form), (new, new_form) = map(jax.tree.flatten, (known, _parameters(sim)))
    return old_form == new_form and all(map(_is_same, old, new))


def _parameters(sim: Simulation) -> PyTree:
    """All that forces and lists depend on besides the carry."""
    return sim.integrator, sim.dt, sim.t0


def _made(carry: Carry) -> PyTree:
    """What forces and lists were made of, and are: a random key, too, but not what observers have seen."""
    return carry.step, carry.state, carry.aux, carry.key


def _is_same(a: PyTree, b: PyTree) -> bool:
    if a is b:
        return True
    if not (eqx.is_array(a) and eqx.is_array(b)):
        return not (eqx.is_array(a) or eqx.is_array(b)) and bool(a == b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if is_random_key(a):
        a, b = jax.random.key_data(a), jax.random.key_data(b)
    # Numbers that are not finite are the same as themselves.
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()
