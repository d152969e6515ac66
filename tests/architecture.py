"""The rules of the code, as functions from source text to a list of violations.

`test_architecture.py` runs each over the package, where it must find nothing, and over a bad
example, where it must find something.
"""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from .architecture_exceptions import (
    CONCRETE_ALLOWED,
    KEYWORDS_ALLOWED,
    PRIVATE_WORDS,
    WORDS_ALLOWED,
)

PACKAGE = Path(__file__).parent.parent / "physkit"

# A layer imports only from layers before it.
LAYERS = (
    "html",
    "core",
    "parallel",
    "native",
    "geometry",
    "particles",
    "fields",
    "quantum",
    "spins",
    "reactions",
    "coupling",
    "integrators",
    "observe",
    "storage",
    "simulate",
    "fit",
    "ensemble",
    "inference",
    "systems",
    "interop",
    "plot",
    "testing",
    "cli",
)

MAX_LINES = 400
MAX_FILES = 16  # in a folder, its `__init__.py` included
MAX_ANY = 0.05  # of annotated arguments

# Layers that serve every physics: they ask protocols, and name no concrete class of a physics layer.
GENERIC_LAYERS = ("core", "parallel", "storage", "simulate", "ensemble", "fit")
PHYSICS_LAYERS = (
    "particles",
    "fields",
    "quantum",
    "spins",
    "reactions",
    "coupling",
    "integrators",
    "observe",
)


# Only where the user's own call asks for it.
CONFIGURES_JAX = ("physkit/parallel/_compilation_cache.py",)

PRIVATE_ROOTS = ("jax._src", "jax.interpreters", "jax.extend", "equinox.internal", "jaxlib")
PRIVATE_ALLOWED = (
    "physkit/core/numerics/_linear_call.py",
    "physkit/core/numerics/_custom_jvp.py",
)

ARRAY_MAKERS = ("jnp", "np", "numpy", "jax.numpy", "jax.random", "jax.device_put", "jr")
# These return no array.
NO_ARRAY = (
    "deg2rad",
    "dtype",
    "iinfo",
    "finfo",
    "errstate",
    "result_type",
    "issubdtype",
    "set_printoptions",
)


@functools.lru_cache(maxsize=1)
def _parse(text: str) -> ast.Module:
    """The tree of a file: rule after rule asks for that of the same one."""
    return ast.parse(text)


@functools.lru_cache(maxsize=1)
def _nodes(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(_parse(text)))


def _dotted(node: ast.AST) -> str:
    """`ast.unparse`, but fast for names with dots, which nearly all are."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ".".join([ast.unparse(node), *reversed(names)])
    return ".".join([node.id, *reversed(names)])


def files() -> Iterator[tuple[str, str]]:
    """(path from the repository's root, text) of every file of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE.parent).as_posix(), path.read_text()


def module_name(path: str) -> str:
    """`physkit/core/_module.py` → `physkit.core._module`."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@functools.cache
def imports(path: str, text: str, *, at_import_only: bool = False) -> tuple[tuple[int, str], ...]:
    """(line, dotted name) of everything imported; `from a import b` gives a.b."""
    return tuple(_imports(path, text, at_import_only))


def _imports(path: str, text: str, at_import_only: bool) -> Iterator[tuple[int, str]]:
    package = module_name(path).split(".")
    if not path.endswith("__init__.py"):
        package = package[:-1]
    for node in _run_at_import(_parse(text)) if at_import_only else _nodes(text):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                yield node.lineno, ".".join([*base, alias.name])


def _run_at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes that run when the module is imported: no function bodies, no `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            # The body runs later, but decorators and defaults run now.
            defaults = [*child.args.defaults, *(d for d in child.args.kw_defaults if d)]
            for part in [*getattr(child, "decorator_list", []), *defaults]:
                yield part
                yield from _run_at_import(part)
            continue
        yield child
        yield from _run_at_import(child)


def layer_breaches(path: str, text: str) -> list[str]:
    """Imports from a layer that comes later, or of another layer's private files."""
    own = path.split("/")[1:]
    if len(own) < 2:
        return []
    found = []
    for line, name in imports(path, text):
        parts = name.split(".")
        if parts[0] != "physkit" or len(parts) < 2 or parts[1] == own[0]:
            continue
        where = f"{path}:{line}: "
        if parts[1] not in LAYERS:
            if parts[1] != "__version__":
                found.append(f"{where}{name}: no such layer")
        elif LAYERS.index(parts[1]) > LAYERS.index(own[0]):
            found.append(f"{where}{own[0]} imports {parts[1]}, which is a later layer")
        elif any(p.startswith("_") for p in parts[2:]):
            found.append(f"{where}{name} is private to {parts[1]}: import its public name")
    return found


def cycles(sources: dict[str, str]) -> list[str]:
    """Groups of modules that import one another while being imported."""
    modules = {module_name(path): path for path in sources}

    def module_of(imported):  # a.b.c may be the module a.b.c, or the name c in a.b
        return imported if imported in modules else imported.rpartition(".")[0]

    graph = {
        name: {
            module_of(imported)
            for _, imported in imports(path, sources[path], at_import_only=True)
            if module_of(imported) in modules and module_of(imported) != name
        }
        for name, path in modules.items()
    }
    found, state = [], {}

    def visit(name, trail):
        state[name] = "open"
        for target in sorted(graph[name]):
            if state.get(target) == "open":
                found.append(" → ".join([*trail[trail.index(target) :], target]))
            elif target not in state:
                visit(target, [*trail, target])
        state[name] = "done"

    for name in sorted(graph):
        if name not in state:
            visit(name, [name])
    return found


def length_breaches(path: str, text: str) -> list[str]:
    """Files that are longer than a reader takes in at once."""
    lines = text.count("\n")
    return [f"{path}: {lines} lines, at most {MAX_LINES}"] if lines > MAX_LINES else []


def banned(path: str, text: str) -> list[str]:
    """Constructs that fail silently, or that no part of the package needs."""
    found = []
    for node in _nodes(text):
        where = f"{path}:{getattr(node, 'lineno', 0)}: "
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            found.append(f"{where}from __future__ import … disables abstract fields")
        elif isinstance(node, ast.Call):
            called = _dotted(node.func)
            if called in ("eval", "exec", "compile", "__import__", "breakpoint"):
                found.append(f"{where}{called}()")
            if called.endswith("config.update") and path not in CONFIGURES_JAX:
                found.append(f"{where}configuration belongs to the user")
            # np.nan_to_num works on the host, where a plot may leave out what is not finite.
            hides_nan = called in ("jnp.nan_to_num", "jax.numpy.nan_to_num")
            if hides_nan or called.endswith(("debug.print", "debug.callback", "error_if")):
                found.append(f"{where}{called} (faults travel as data and are never hidden)")
            if any(k.arg == "allow_pickle" for k in node.keywords):
                found.append(f"{where}files are not trusted")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            name = getattr(node, "name", "lambda")
            if node.args.kwarg and not {(path, name), (path, "*")} & KEYWORDS_ALLOWED.keys():
                found.append(
                    f"{where}{name}(**{node.args.kwarg.arg}) is not on the list of reasons"
                )
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            found.append(f"{where}bare except")
    for line, name in imports(path, text):
        root = name.split(".")[0]
        if root in ("pickle", "dill", "cloudpickle", "marshal", "shelve"):
            found.append(f"{path}:{line}: {name}: files are not trusted")
    return found


def private_jax(path: str, text: str) -> list[str]:
    """Uses of what JAX and Equinox may change without notice, outside the one file for them."""
    if path in PRIVATE_ALLOWED:
        return []
    names = {(line, name) for line, name in imports(path, text)}
    for node in _nodes(text):
        if isinstance(node, ast.Attribute):
            dotted = _dotted(node)
            names.add(
                (node.lineno, "equinox" + dotted[3:] if dotted.startswith("eqx.") else dotted)
            )
    found = set()
    for line, name in names:
        for root in PRIVATE_ROOTS:
            if name == root or name.startswith(root + "."):
                found.add(f"{path}:{line}: {root}")
    return sorted(found)


def work_at_import(path: str, text: str) -> list[str]:
    """Calls that make arrays while the module is being imported."""
    found = []
    for node in _run_at_import(_parse(text)):
        if not isinstance(node, ast.Call):
            continue
        called = _dotted(node.func)
        root, _, last = called.rpartition(".")
        makes = called in ARRAY_MAKERS or any(
            root == maker or root.startswith(maker + ".") for maker in ARRAY_MAKERS
        )
        if makes and last not in NO_ARRAY:
            found.append(f"{path}:{node.lineno}: {called}(…) runs at import")
    return found


def missing_docstrings(path: str, text: str) -> list[str]:
    """Modules, public classes and public functions without a sentence about them."""
    tree = _parse(text)
    found = [] if _has_docstring(tree, 2) else [f"{path}: the module needs a docstring"]
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    named = [n for n in tree.body if isinstance(n, kinds) and not n.name.startswith("_")]
    undocumented = [n for n in named if not _has_docstring(n, 4)]
    return found + [f"{path}:{n.lineno}: {n.name} needs a docstring" for n in undocumented]


def _has_docstring(node: ast.AST, words: int) -> bool:
    text = ast.get_docstring(node) or ""
    return len(text.split()) >= words and "_description_" not in text and "TODO" not in text


def folder_sizes(sources: dict[str, str]) -> list[str]:
    """Folders with more files than one takes in at a glance."""
    counts: dict[str, int] = {}
    for path in sources:
        folder = path.rpartition("/")[0]
        counts[folder] = counts.get(folder, 0) + 1
    return [f"{f}: {n} files, at most {MAX_FILES}" for f, n in counts.items() if n > MAX_FILES]


def subfolder_cycles(sources: dict[str, str]) -> list[str]:
    """Sub-folders of one layer that import one another, whichever way round."""
    arrows: set[tuple[str, str]] = set()
    for path, text in sources.items():
        if path.endswith("__init__.py"):
            continue  # a layer's own `__init__` re-exports all
        here = _subfolder(module_name(path))
        for _, name in imports(path, text, at_import_only=True):
            there = _subfolder(name)
            if here and there and here != there and here.split(".")[1] == there.split(".")[1]:
                arrows.add((here, there))
    graph = {a: {y for x, y in arrows if x == a} for a, _ in arrows}
    found = []
    for start in sorted(graph):
        reached, todo = set(), list(graph[start])
        while todo:
            folder = todo.pop()
            if folder not in reached:
                reached.add(folder)
                todo += graph.get(folder, ())
        if start in reached:
            found.append(f"{start} imports itself through {sorted(graph[start] & reached)}")
    return found


def _subfolder(name: str) -> str:
    """`physkit.simulate.loop._carry` → `physkit.simulate.loop`; empty for files at a layer's top."""
    parts = name.split(".")
    if parts[0] != "physkit" or len(parts) < 4:
        return ""
    return ".".join(parts[:3])


def arguments(text: str) -> Iterator[ast.arg]:
    """Every named argument of every function, but self and cls."""
    for node in _nodes(text):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            yield from (a for a in named if a.arg not in ("self", "cls"))


def share_of_any(sources: dict[str, str]) -> float:
    """Part of all arguments that say nothing more definite than Any."""
    all_arguments = [a for text in sources.values() for a in arguments(text)]
    vague = [a for a in all_arguments if a.annotation and ast.unparse(a.annotation) == "Any"]
    return len(vague) / max(len(all_arguments), 1)


def concrete_classes(path: str, text: str) -> list[str]:
    """Final classes of a physics layer that a generic layer names."""
    layer = path.split("/")[1]
    if layer not in GENERIC_LAYERS:
        return []
    found = []
    for line, name in imports(path, text):
        parts = name.split(".")
        if len(parts) < 3 or parts[0] != "physkit" or parts[1] not in PHYSICS_LAYERS:
            continue
        last = parts[-1]
        is_final_class = (
            last[:1].isupper() and not last.isupper() and not last.startswith("Abstract")
        )
        if is_final_class and (layer, last) not in CONCRETE_ALLOWED:
            found.append(f"{path}:{line}: {layer} names {last}: ask a protocol")
    return found


def private_words(path: str, text: str) -> list[str]:
    """Identifiers that only those who wrote them understand."""
    found = []
    for node in _nodes(text):
        name = (
            getattr(node, "name", None) or getattr(node, "id", None) or getattr(node, "attr", None)
        )
        name = name or (node.arg if isinstance(node, ast.arg) else None)
        plain = name.strip("_").lower() if isinstance(name, str) else ""
        if plain in PRIVATE_WORDS and (path.split("/")[1], plain) not in WORDS_ALLOWED:
            found.append(f"{path}:{getattr(node, 'lineno', 0)}: {name}; say {PRIVATE_WORDS[plain]}")
    return sorted(set(found))
