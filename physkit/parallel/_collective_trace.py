"""The collectives of a program, and the bytes that they move, counted in its trace without running it.

The traced program (a jaxpr) is read as a graph. Equal equations count once, and equations that no result
depends on are left out: compilers merge and drop them, too.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax
import numpy as np

from physkit.core import PyTree, is_literal, mark_results

from ._communicator import MeshComm

# Classes of jaxprs lie in private modules of JAX: they are told by their attributes here.
Jaxpr: TypeAlias = Any
Equation: TypeAlias = Any
Atom: TypeAlias = Any  # a variable or a literal of a jaxpr
Value: TypeAlias = tuple[Any, Any]  # (which node made it, which of the node's results it is)
# Node → the values that it reads, and the collectives in it.
Nodes: TypeAlias = dict[Any, tuple[tuple[Value, ...], list["Collective"]]]

_AXES = "xyz"


# Parts of an operand that one device sends, for n devices in line.
def _send_all(n: int) -> float:
    del n
    return 1.0


def _send_other_blocks(n: int) -> float:
    """All but the block that the device keeps."""
    return (n - 1) / n


def _send_around_ring(n: int) -> float:
    """A ring all-reduce: a reduce-scatter and an all-gather, each of all blocks but one."""
    return 2 * (n - 1) / n


def _send_to_all_others(n: int) -> float:
    return float(n - 1)


# primitive: (its kind, the part of its operand that a device sends)
_KINDS: dict[str, tuple[str, Callable[[int], float]]] = {
    "ppermute": ("neighbors", _send_all),
    "all_to_all": ("transposition", _send_other_blocks),
    "psum": ("sum", _send_around_ring),
    "psum_invariant": ("sum", _send_around_ring),
    "pmax": ("extreme", _send_around_ring),
    "pmin": ("extreme", _send_around_ring),
    "all_gather": ("all of the domain", _send_to_all_others),
    "reduce_scatter": ("scattered sum", _send_other_blocks),
}

# What every device has alike after it. A transposition may gather a whole line (`forward_transform`).
_REACHES_ALL = frozenset(_KINDS) - {"ppermute"} | {"all_gather_invariant"}


@dataclasses.dataclass(frozen=True)
class Collective:
    """One collective operation of a program.

    - `kind`: what it does: `"neighbors"`, `"transposition"`, `"sum"`, `"extreme"`, `"all of the domain"`.
    - `axes`: the axes of space along which the devices that take part are in line: `"x"`, `"xy"`.
    - `bytes`: bytes that one device sends each time; sums and extremes as around a ring.
    - `count`: how many times.
    - `when`: `"always"`, `"in a loop"` of unknown length (then `count` is per iteration), or
      `"sometimes"`, in a branch that is not always taken.
    """

    kind: str
    axes: str
    bytes: float
    count: int
    when: str = "always"


def trace_collectives(
    function: Callable, shape: tuple[int, ...], *arguments: PyTree
) -> tuple[list[Collective], PyTree]:
    """Trace `function(comm, *arguments)` as `Spmd` runs it; return its collectives, and its result's shapes.

    Nothing is run, and no devices are needed.

    **Arguments:**

    - `function`: as that of `Spmd`.
    - `shape`: devices per axis of space.
    - `arguments`: in device layout `[device, …]`, as arrays or `jax.ShapeDtypeStruct`s.
    """
    jaxpr, out = _trace(function, shape, arguments)
    axis_sizes = dict(zip(MeshComm(shape).names, shape, strict=True))
    return _find_collectives(jaxpr, axis_sizes, 1, "always"), out


def trace_part_dependence(
    function: Callable, shape: tuple[int, ...], parts: PyTree, *arguments: PyTree
) -> tuple[PyTree, PyTree]:
    """Which results of `function(comm, parts, *arguments)` each device computes from its own `parts` alone.

    Those are results that depend on `parts` other than by a collective that reaches all devices. In doubt a
    result is none of them: one that has passed a sum, an extreme or a transposition counts as the domain's.

    **Arguments:** as those of `trace_collectives`; nothing is run, either.

    **Returns:** a tree of bools, and the shapes of the result, `[device, …]`.
    """
    jaxpr, out = _trace(function, shape, (parts, *arguments))
    program = _open_jaxpr(jaxpr)
    count = len(jax.tree.leaves(parts))
    marks = [k < count for k in range(len(program.invars))]
    marked = mark_results(program, marks, _REACHES_ALL)
    return jax.tree.unflatten(jax.tree.structure(out), marked), out


def _trace(function: Callable, shape: tuple[int, ...], arguments: PyTree) -> tuple[Jaxpr, PyTree]:
    """The program of `Spmd` with the backend `shard_map`, and the shapes of its result."""

    def is_array(x: Any) -> bool:
        return isinstance(x, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)

    arrays, static = eqx.partition(arguments, is_array)
    comm, static_output = MeshComm(shape), {}

    def on_device(arrays: PyTree) -> PyTree:
        local_arrays = jax.tree.map(lambda x: x[0], arrays)  # without the device axis, of length 1
        # Only arrays may leave `shard_map`: whatever else is returned goes out by the closure.
        out, static_output["value"] = eqx.partition(
            function(comm, *eqx.combine(local_arrays, static)), eqx.is_array_like
        )
        return jax.tree.map(lambda x: jax.numpy.asarray(x)[None], out)

    # An abstract mesh has a shape and names, but no devices.
    automatic = (jax.sharding.AxisType.Auto,) * len(shape)
    mesh = jax.sharding.AbstractMesh(shape, comm.names, axis_types=automatic)
    spec = jax.sharding.PartitionSpec(comm.names)
    mapped = jax.shard_map(on_device, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    jaxpr, out = jax.make_jaxpr(mapped, return_shape=True)(arrays)
    return jaxpr, eqx.combine(out, static_output["value"])


def _find_collectives(
    jaxpr: Jaxpr, axis_sizes: dict[str, int], count: int, when: str
) -> list[Collective]:
    """The collectives of a jaxpr: those that results depend on, and equal ones once."""
    nodes: Nodes = {}
    jaxpr = _open_jaxpr(jaxpr)
    inputs = [("input", k) for k in range(len(jaxpr.invars))]
    outputs = _add_nodes(jaxpr, inputs, nodes, axis_sizes, count, when)
    # From the results back to what they depend on.
    needed, waiting = set(), list(outputs)
    while waiting:
        node = waiting.pop()[0]
        if node in needed or node not in nodes:
            continue
        needed.add(node)
        waiting.extend(nodes[node][0])
    return [
        collective
        for node, (_, collectives) in nodes.items()
        if node in needed
        for collective in collectives
    ]


def _add_nodes(
    jaxpr: Jaxpr,
    inputs: Sequence[Value],
    nodes: Nodes,
    axis_sizes: dict[str, int],
    count: int,
    when: str,
) -> list[Value]:
    """Add a node to `nodes` for each different equation of a jaxpr; return the values of its results."""
    values: dict[Any, Value] = dict(zip(jaxpr.invars, inputs, strict=True))

    def value_of(x: Atom) -> Value:
        # Constants of the jaxpr, which no equation makes, stand for themselves.
        if is_literal(x):
            return "literal", (repr(x.val), str(x.aval))
        return values.get(x, (id(x), 0))

    for equation in jaxpr.eqns:
        equation_inputs = tuple(map(value_of, equation.invars))
        called = _called_jaxpr(equation)
        if called is not None:
            # Into the same graph: what a nested `jit` computes may be dropped, or equal to something outside.
            outputs = _add_nodes(called, equation_inputs, nodes, axis_sizes, count, when)
        else:
            key = _node_key(equation, equation_inputs)
            if key not in nodes:
                collectives = list(_collectives_of(equation, axis_sizes, count, when))
                nodes[key] = (equation_inputs, collectives)
            outputs = [(key, k) for k in range(len(equation.outvars))]
        values |= dict(zip(equation.outvars, outputs, strict=True))
    return list(map(value_of, jaxpr.outvars))


def _called_jaxpr(equation: Equation) -> Jaxpr | None:
    """The jaxpr that an equation runs once on its inputs, if it does: that of a `jit`, say."""
    if equation.primitive.name in ("scan", "while", "cond", "custom_linear_solve"):
        return None
    jaxprs = [x for x in equation.params.values() if _is_jaxpr(x)]
    if len(jaxprs) != 1:
        return None
    called = _open_jaxpr(jaxprs[0])
    return called if len(called.invars) == len(equation.invars) else None


def _node_key(equation: Equation, inputs: tuple[Value, ...]) -> Any:
    """A key that equal equations share: operation, settings, inputs."""
    settings = tuple(sorted((k, repr(v)) for k, v in equation.params.items() if not _is_jaxpr(v)))
    key = hash((equation.primitive.name, settings, inputs))
    # `repr` truncates long settings: such equations count as different from all others.
    return key if len(repr(settings)) < 2000 else id(equation)


def _collectives_of(
    equation: Equation, axis_sizes: dict[str, int], count: int, when: str
) -> Iterator[Collective]:
    """The collectives of one equation, and of the jaxprs in it."""
    name, params = equation.primitive.name, equation.params
    if name in _KINDS:
        yield from _collective(equation, axis_sizes, count, when)
    elif name == "scan":
        yield from _find_collectives(params["jaxpr"], axis_sizes, count * params["length"], when)
    elif name == "while":
        for part in ("cond_jaxpr", "body_jaxpr"):
            yield from _find_collectives(params[part], axis_sizes, count, "in a loop")
    elif name == "cond":
        # One branch is taken: the one that sends most stands for all.
        branches = [
            _find_collectives(branch, axis_sizes, count, "sometimes")
            for branch in params["branches"]
        ]
        yield from max(branches, key=_total_bytes)
    elif name == "custom_linear_solve":
        # Its other jaxprs are for derivatives.
        yield from _find_collectives(params["jaxprs"].solve, axis_sizes, count, when)
    else:
        # Primitives that are not known here, with jaxprs in their settings: rules for custom derivatives.
        for inner in jax.tree.leaves(list(params.values()), is_leaf=_is_jaxpr):
            if _is_jaxpr(inner):
                yield from _find_collectives(inner, axis_sizes, count, when)


def _collective(
    equation: Equation, axis_sizes: dict[str, int], count: int, when: str
) -> Iterator[Collective]:
    """The collective that an equation is; none along axes with a single device."""
    # Primitives name their axes differently, and single ones not always in a tuple.
    params = equation.params
    names = params.get("axis_name", params.get("axes", ()))
    names = tuple(names) if isinstance(names, tuple | list) else (names,)
    names = tuple(n for n in names if n in axis_sizes)
    devices = math.prod(axis_sizes[n] for n in names)
    if devices <= 1:
        return
    kind, sent_part = _KINDS[equation.primitive.name]
    operand_bytes = sum(x.aval.size * x.aval.dtype.itemsize for x in equation.invars)
    axes = "".join(_AXES[list(axis_sizes).index(n)] for n in names)
    yield Collective(kind, axes, sent_part(devices) * operand_bytes, count, when)


def _total_bytes(collectives: list[Collective]) -> float:
    return float(sum(c.bytes * c.count for c in collectives))


def _is_jaxpr(x: Any) -> bool:
    """Whether `x` is a jaxpr, closed or open; told by its attributes, since the classes are private."""
    return hasattr(x, "eqns") and (hasattr(x, "invars") or hasattr(x, "jaxpr"))


def _open_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The open jaxpr in a closed one."""
    return getattr(jaxpr, "jaxpr", jaxpr)
