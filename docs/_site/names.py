"""Which page of the reference has which public name."""

import ast
import functools
import importlib
import inspect
from typing import Any, NamedTuple

import physkit as pk
from physkit._names import FAMILIES, FRONT_PAGE, OTHER_LAYERS, SHOWN_LAYERS

# Folders that authors of new physics import from, and what they are about.
LAYERS = {
    "core": "modules, terms, time, errors",
    "geometry": "spaces, grids, boundaries",
    "particles": "particles, lattices, velocities",
    "particles.neighbors": "neighbor lists",
    "particles.forces": "forces and potentials",
    "fields": "fields and spectra",
    "fields.operators": "derivatives",
    "fields.finite_volume": "conservation laws, reconstruction, limiters, Riemann solvers",
    "fields.elliptic": "Poisson and Helmholtz",
    "fields.equations": "partial differential equations",
    "fields.lattice_boltzmann": "fluids on lattices",
    "quantum": "qubits, circuits, open systems",
    "spins": "spins on lattices",
    "reactions": "networks of reactions",
    "coupling": "particles and fields together",
    "integrators": "everything that advances a state: integrators, thermostats, barostats, Monte Carlo",
    "observe": "quantities, observers, guards",
    "storage": "files, checkpoints, export",
    "simulate": "the simulation and its verbs",
    "fit": "fits, bounds, standard errors",
    "inference": "posteriors, chains, filters",
    "ensemble": "sweeps, workers, statistics of members",
    "systems": "ready-made simulations",
    "html": "trees, tables and small pictures as HTML",
    "interop": "structures, force fields and arrays of other packages",
    "plot": "pictures and films",
    "parallel": "devices, processes, the compilation cache",
    "native": "loops over pairs as C",
    "testing": "the test battery",
    "testing.validation": "published numbers",
}


class Entry(NamedTuple):
    """A public name: its full path, the page that documents it, and the object."""

    path: str
    page: str
    value: Any

    @property
    def name(self) -> str:
        return self.path.rsplit(".", 1)[-1]

    @property
    def is_own(self) -> bool:
        """Whether its docstring is physkit's: not so for numbers, and for names of types of others."""
        home = (
            self.value.__name__
            if inspect.ismodule(self.value)
            else getattr(self.value, "__module__", "")
        )
        described = (
            inspect.isclass(self.value)
            or inspect.isroutine(self.value)
            or inspect.ismodule(self.value)
        )
        return (described or hasattr(self.value, "__wrapped__")) and str(home).startswith("physkit")

    @property
    def about(self) -> str:
        """The first sentence of its docstring."""
        text = inspect.getdoc(self.value) or "" if self.is_own else ""
        return " ".join(text.split("\n\n")[0].split())


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Every public name once: on the page of its first family, or else of its layer."""
    found: dict[tuple[str, int], Entry] = {}
    family_of = {
        n: f
        for f, (_, layers) in reversed(FAMILIES.items())
        for names in layers.values()
        for n in names
    }

    def add(path: str, page: str, value: Any) -> None:
        # By name, too: numbers may be equal and mean different things.
        found.setdefault((path.rsplit(".", 1)[-1], id(value)), Entry(path, page, value))

    for layer, names in FRONT_PAGE.items():
        for name in names:
            add(f"physkit.{name}", family_of.get(name, layer), getattr(pk, name))
    for family, (_, layers) in FAMILIES.items():
        for name in (n for names in layers.values() for n in names):
            add(f"physkit.{family}.{name}", family, getattr(getattr(pk, family), name))
    for layer in LAYERS:
        module = importlib.import_module(f"physkit.{layer}")
        for name in exported_names(module):
            add(f"physkit.{layer}.{name}", layer, getattr(module, name))
    return tuple(sorted(found.values(), key=lambda entry: entry.name.lower()))


@functools.cache
def documented_at() -> dict[str, str]:
    """Every way to write a public name → its full path in the reference."""
    by_value = {(entry.name, id(entry.value)): entry.path for entry in entries()}
    written = {entry.path.removeprefix("physkit."): entry.path for entry in entries()}
    for family, (_, layers) in FAMILIES.items():
        for name in (n for names in layers.values() for n in names):
            written[f"{family}.{name}"] = by_value[name, id(getattr(getattr(pk, family), name))]
    for layer in (*SHOWN_LAYERS, *OTHER_LAYERS, *LAYERS):
        module = importlib.import_module(f"physkit.{layer}")
        for name in exported_names(module):
            if path := by_value.get((name, id(getattr(module, name)))):
                written[f"{layer}.{name}"] = path
    for entry in entries():  # A bare name, where it is one thing only.
        same = [other for other in entries() if other.name == entry.name]
        if len(same) == 1 or entry.path.count(".") == 1:
            written.setdefault(entry.name, entry.path)
    return written


def exported_names(module: Any) -> list[str]:
    """Names that a folder's `__init__` re-exports explicitly, as `X as Y`."""
    nodes = ast.walk(ast.parse(inspect.getsource(module)))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 1]
    return sorted({a.asname for node in froms for a in node.names if a.asname})
