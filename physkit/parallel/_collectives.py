"""What the devices of a grid say to one another: counted in a program, without running it."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ._communicator import MeshComm

_AXES = "xyz"
# primitive: (what it is for, bytes that a device sends of those it has, for n devices in line)
_KINDS: dict[str, tuple[str, Callable[[int], float]]] = {
    "ppermute": ("neighbors", lambda n: 1.0),
    "all_to_all": ("transposition", lambda n: (n - 1) / n),
    "psum": ("sum", lambda n: 2 * (n - 1) / n),
    "psum_invariant": ("sum", lambda n: 2 * (n - 1) / n),
    "pmax": ("extreme", lambda n: 2 * (n - 1) / n),
    "pmin": ("extreme", lambda n: 2 * (n - 1) / n),
    "all_gather": ("all of the domain", lambda n: float(n - 1)),
    "reduce_scatter": ("scattered sum", lambda n: (n - 1) / n),
}


@dataclasses.dataclass(frozen=True)
class Collective:
    """One exchange that a program holds.

    - `kind`: `"neighbors"`, `"transposition"`, `"sum"`, `"extreme"`, `"all of the domain"`.
    - `along`: the axes of space that the devices taking part lie along, `"x"`, `"xy"`.
    - `bytes`: what one device sends each time, sums around a ring.
    - `times`: how often, where the program says.
    - `when`: `"always"`, `"in a loop"` of unknown length (then `times` is per turn), or `"sometimes"`,
      in a branch that is not always taken.
    """

    kind: str
    axes: str
    bytes: float
    count: int
    when: str = "always"


def trace_collectives(
    function: Callable, shape: tuple[int, ...], *arguments: Any
) -> tuple[list[Collective], Any]:
    """What `function(comm, *arguments)`, run as `Spmd` does, exchanges, and the shapes of its result.

    Nothing is run and no devices are needed: the program is only traced.

    **Arguments:**

    - `arguments`: in device layout, as arrays or `jax.ShapeDtypeStruct`s.
    """
    program, out = _traced(function, shape, arguments)
    sizes = dict(zip(MeshComm(shape).names, shape, strict=True))
    return _counted(program, sizes, 1, "always"), out


def _traced(function: Callable, shape: tuple[int, ...], arguments: Any) -> tuple[Any, Any]:
    is_array = lambda x: isinstance(x, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)
    dynamic, fixed = eqx.partition(arguments, is_array)
    comm, said = MeshComm(shape), {}

    def local(dynamic: Any) -> Any:
        here = jax.tree.map(lambda x: x[0], dynamic)
        arrays, said["rest"] = eqx.partition(
            function(comm, *eqx.combine(here, fixed)), eqx.is_array_like
        )
        return jax.tree.map(lambda x: jax.numpy.asarray(x)[None], arrays)

    automatic = (jax.sharding.AxisType.Auto,) * len(shape)
    mesh = jax.sharding.AbstractMesh(shape, comm.names, axis_types=automatic)
    spec = jax.sharding.PartitionSpec(comm.names)
    mapped = jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    program, out = jax.make_jaxpr(mapped, return_shape=True)(dynamic)
    return program, eqx.combine(out, said["rest"])


def _counted(program: Any, sizes: dict[str, int], times: int, when: str) -> list[Collective]:
    """The messages of a program, of those that are the same one, and of those that matter to a result:
    compilers drop the others."""
    nodes: dict[Any, tuple[tuple[Any, ...], list[Collective]]] = {}
    inner = getattr(program, "jaxpr", program)
    out = _numbered(
        inner, [("given", k) for k in range(len(inner.invars))], nodes, sizes, times, when
    )
    seen, waiting, found = set(), list(out), {}
    while waiting:
        key = waiting.pop()[0]
        if key in seen or key not in nodes:
            continue
        seen.add(key)
        inputs, found[key] = nodes[key]
        waiting.extend(inputs)
    return [m for key in nodes if key in found for m in found[key]]


def _numbered(jaxpr: Any, given: Any, nodes: dict, sizes, times, when) -> list[Any]:
    """Every value of a program by what it is made from, (maker, number); those of the results."""
    numbers: dict[Any, Any] = dict(zip(jaxpr.invars, given, strict=True))
    number = lambda x: _literal(x) if hasattr(x, "val") else numbers.get(x, (id(x), 0))
    for equation in jaxpr.eqns:
        inputs = tuple(map(number, equation.invars))
        called = _called(equation)
        if called is not None:
            outputs = _numbered(called, inputs, nodes, sizes, times, when)
        else:
            key = _maker(equation, inputs)
            if key not in nodes:
                nodes[key] = (inputs, list(_own(equation, sizes, times, when)))
            outputs = [(key, k) for k in range(len(equation.outvars))]
        numbers |= dict(zip(equation.outvars, outputs, strict=True))
    return list(map(number, jaxpr.outvars))


def _called(equation: Any) -> Any:
    """The program that an equation runs once on what it is given, if it does."""
    if equation.primitive.name in ("scan", "while", "cond", "custom_linear_solve"):
        return None
    programs = [x for x in equation.params.values() if _is_program(x)]
    if len(programs) != 1:
        return None
    inner = getattr(programs[0], "jaxpr", programs[0])
    return inner if len(inner.invars) == len(equation.invars) else None


def _maker(equation: Any, inputs: Any) -> Any:
    """What makes two equations the same: operation, settings, inputs."""
    settings = tuple(sorted((k, repr(v)) for k, v in equation.params.items() if not _is_program(v)))
    same = hash((equation.primitive.name, settings, inputs))
    return same if len(repr(settings)) < 2000 else id(equation)


def _literal(x: Any) -> Any:
    return ("literal", repr(x.val), str(x.aval))


def _own(equation: Any, sizes: dict[str, int], times: int, when: str) -> Iterator[Collective]:
    """What an equation says itself, and what the programs in it do."""
    name, given = equation.primitive.name, equation.params
    if name in _KINDS:
        yield from _message(equation, sizes, times, when)
    elif name == "scan":
        yield from _counted(given["jaxpr"], sizes, times * given["length"], when)
    elif name == "while":
        for part in ("cond_jaxpr", "body_jaxpr"):
            yield from _counted(given[part], sizes, times, "in a loop")
    elif name == "cond":  # one branch is taken: the one that says most stands for all
        branches = [_counted(branch, sizes, times, "sometimes") for branch in given["branches"]]
        yield from max(branches, key=lambda b: sum(m.bytes * m.count for m in b))
    elif name == "custom_linear_solve":  # its other programs are for derivatives
        yield from _counted(given["jaxprs"].solve, sizes, times, when)
    else:
        for inner in jax.tree.leaves(list(given.values()), is_leaf=_is_program):
            if _is_program(inner):
                yield from _counted(inner, sizes, times, when)


def _message(equation: Any, sizes: dict[str, int], times: int, when: str) -> Iterator[Collective]:
    given = equation.params
    names = given.get("axis_name", given.get("axes", ()))
    names = tuple(names) if isinstance(names, tuple | list) else (names,)
    names = tuple(n for n in names if n in sizes)
    count = math.prod(sizes[n] for n in names)
    if count <= 1:
        return
    kind, share = _KINDS[equation.primitive.name]
    own = sum(x.aval.size * x.aval.dtype.itemsize for x in equation.invars)
    along = "".join(_AXES[list(sizes).index(n)] for n in names)
    yield Collective(kind, along, share(count) * own, times, when)


def _is_program(x: Any) -> bool:
    """Whether `x` is a traced program, closed or not, by what programs have."""
    return hasattr(x, "eqns") and (hasattr(x, "invars") or hasattr(x, "jaxpr"))
