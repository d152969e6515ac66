"""The digest of a traced program: what it computes, whatever it is called and wherever it is written.

Two processes that trace the same code must get the same digest, so nothing here may depend on addresses, hash
seeds, names of functions, file positions, or on the devices of the process.
"""

import dataclasses
import enum
import hashlib
import types
import weakref
from typing import Any

import jax
import numpy as np

from physkit.core import is_literal, is_random_key

from ._tree_description import describe_static

# Names change no number, and neither does how XLA is to share memory.
_IGNORED = ("name", "debug_info", "donated_invars", "inline", "keep_unused", "compiler_options_kvs")


def program_digest(*programs: Any) -> str:
    """What some traced programs (jaxprs) compute, as 16 hexadecimal digits: operations, shapes, constants."""
    walker = _Walker()
    text = " ".join(walker.value(program) for program in programs)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# Of jaxprs, which are never changed, as long as something holds them: JAX keeps those that it has traced.
_KNOWN: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()


class _Walker:
    """Digests of jaxprs, each computed once: loops and conditions share many of them."""

    def jaxpr(self, jaxpr: Any) -> str:
        known = _KNOWN.get(jaxpr)
        if known is None:
            text = "\n".join(self._lines(jaxpr))
            known = _KNOWN[jaxpr] = hashlib.sha256(text.encode()).hexdigest()[:24]
        return known

    def _lines(self, jaxpr: Any) -> list[str]:
        numbers: dict[Any, int] = {}  # variables in the order in which they appear

        def atom(x: Any) -> str:
            if is_literal(x):  # a constant within the text of the program
                return f"{_aval(x.aval)}={_array(x.val)}"
            return f"{numbers.setdefault(x, len(numbers))}:{_aval(x.aval)}"

        lines = [" ".join(map(atom, (*getattr(jaxpr, "constvars", ()), *jaxpr.invars)))]
        for eqn in jaxpr.eqns:
            parameters = (
                f"{name}={self.value(value, 'callback' in eqn.primitive.name)}"
                for name, value in sorted(eqn.params.items())
                if name not in _IGNORED
            )
            inputs, outputs = map(atom, eqn.invars), map(atom, eqn.outvars)
            lines.append(" ".join([eqn.primitive.name, *inputs, "→", *outputs, *parameters]))
        lines.append(" ".join(map(atom, jaxpr.outvars)))
        return lines

    def value(self, value: Any, is_callback: bool = False) -> str:
        """A parameter of an operation."""
        # JAX's classes of programs are no public names: known by what they have.
        if hasattr(value, "jaxpr") and hasattr(value, "consts"):
            return " ".join([self.jaxpr(value.jaxpr), *map(_array, value.consts)])
        if hasattr(value, "eqns"):
            return self.jaxpr(value)
        if isinstance(value, enum.Enum):
            return f"{type(value).__name__}.{value.name}"
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return repr(value)
        if isinstance(value, np.dtype):
            return str(value)
        if isinstance(value, jax.Array | np.ndarray | np.generic):
            return _array(value)
        if isinstance(value, set | frozenset):
            return f"{{{', '.join(sorted(self.value(x) for x in value))}}}"
        if isinstance(value, tuple | list):
            return f"({', '.join(self.value(x, is_callback) for x in value)})"
        if isinstance(value, dict):
            return self.value(sorted((str(k), self.value(v)) for k, v in value.items()))
        if is_callback and isinstance(value, types.FunctionType | types.MethodType):
            # Called from the program and not part of it: only its own code can tell what it does.
            return describe_static(value, code=True)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = ((f.name, getattr(value, f.name, None)) for f in dataclasses.fields(value))
            return self.value([self.value(x, is_callback) for pair in fields for x in pair])
        # Rules of derivatives, meshes, layouts: they decide on no number of this program, and their texts hold
        # addresses and devices.
        return type(value).__name__


def _aval(aval: Any) -> str:
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    return type(aval).__name__ if shape is None or dtype is None else f"{dtype}{list(shape)}"


def _array(x: Any) -> str:
    """A constant of a program, by its bytes."""
    if is_random_key(x):
        return f"{x.dtype} {_array(jax.random.key_data(x))}"
    try:
        array = np.asarray(x)
    except TypeError:
        return type(x).__name__
    if array.dtype == object:
        return type(x).__name__
    content = np.ascontiguousarray(array).tobytes()
    text = content.hex() if len(content) <= 16 else hashlib.sha256(content).hexdigest()[:24]
    return f"{array.dtype}{list(array.shape)}{text}"
