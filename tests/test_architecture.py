"""The package keeps the rules of `architecture.py`, and each rule catches what it is for."""

import functools
import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys

import pytest

from physkit.core import Module, is_abstract
from tests import architecture as rules

SOURCES = dict(rules.files())
PER_FILE = {
    "layers": rules.layer_breaches,
    "length": rules.length_breaches,
    "banned": rules.banned,
    "private JAX": rules.private_jax,
    "work at import": rules.work_at_import,
    "docstrings": rules.missing_docstrings,
    "concrete classes": rules.concrete_classes,
    "private words": rules.private_words,
}


def test_sources_are_found():
    assert len(SOURCES) > 20
    assert "physkit/core/_module.py" in SOURCES


@functools.cache
def violations_by_rule():
    """File after file: each is parsed once for all rules."""
    found = {rule: [] for rule in PER_FILE}
    for path, text in SOURCES.items():
        for rule, check in PER_FILE.items():
            found[rule] += check(path, text)
    return found


@pytest.mark.parametrize("rule", PER_FILE, ids=lambda name: name.replace(" ", "-"))
def test_every_file_keeps_the_rule(rule):
    violations = violations_by_rule()[rule]
    assert not violations, "\n".join(violations)


def test_tests_examples_and_benchmarks_are_as_short():
    root = rules.PACKAGE.parent
    paths = [p for name in ("tests", "examples", "benchmarks") for p in (root / name).rglob("*.py")]
    assert len(paths) > 300
    texts = [(str(p.relative_to(root)), p.read_text(encoding="utf-8")) for p in paths]
    assert not [breach for text in texts for breach in rules.length_breaches(*text)]


def test_no_cycles():
    assert not rules.cycles(SOURCES)


def test_every_folder_is_a_layer():
    folders = {path.split("/")[1] for path in SOURCES if path.count("/") > 1}
    assert folders <= set(rules.LAYERS)


def test_no_cycles_of_subfolders():
    assert not (found := rules.subfolder_cycles(SOURCES)), "\n".join(found)


def test_folders_are_small():
    assert not (found := rules.folder_sizes(SOURCES)), "\n".join(found)


def test_few_arguments_are_any():
    assert rules.share_of_any(SOURCES) < rules.MAX_ANY


def test_every_reason_for_keywords_is_still_needed():
    for path, name in rules.KEYWORDS_ALLOWED:
        assert path in SOURCES
        assert f"def {name}(" in SOURCES[path] or name == "*"


BAD = [
    ("layers", "physkit/core/_x.py", "from physkit.simulate import run"),
    ("layers", "physkit/core/_x.py", "def f():\n    import physkit.particles.forces"),
    ("layers", "physkit/core/_x.py", "from physkit import observe"),
    ("layers", "physkit/observe/_x.py", "from physkit.core._module import param"),
    ("layers", "physkit/observe/_x.py", "from physkit.wishes import param"),
    ("length", "physkit/core/_x.py", "x = 1\n" * 401),
    ("banned", "physkit/core/_x.py", "from __future__ import annotations"),
    ("banned", "physkit/core/_x.py", "import jax\njax.config.update('jax_enable_x64', True)"),
    ("banned", "physkit/core/_x.py", "def f(text):\n    return eval(text)"),
    ("banned", "physkit/core/_x.py", "import pickle"),
    ("banned", "physkit/core/_x.py", "def f():\n    from pickle import loads"),
    ("banned", "physkit/core/_x.py", "np.load(path, allow_pickle=True)"),
    ("banned", "physkit/core/_x.py", "def f(**options): pass"),
    ("banned", "physkit/core/_x.py", "f = lambda **options: options"),
    ("banned", "physkit/core/_health.py", "def other(**options): pass"),
    ("banned", "physkit/core/_x.py", "x = jnp.nan_to_num(x)"),
    ("banned", "physkit/core/_x.py", "try:\n    f()\nexcept:\n    pass"),
    ("private JAX", "physkit/core/_x.py", "from jax._src import core"),
    ("private JAX", "physkit/core/_x.py", "from jax.interpreters import ad"),
    ("private JAX", "physkit/core/_x.py", "import jax\nx = jax.extend.core.Primitive('p')"),
    ("private JAX", "physkit/core/_x.py", "import equinox as eqx\neqx.internal.while_loop"),
    ("private JAX", "physkit/core/_x.py", "import equinox.internal as eqxi"),
    ("work at import", "physkit/core/_x.py", "TABLE = jnp.arange(3)"),
    ("work at import", "physkit/core/_x.py", "TABLE = tuple(np.linspace(0, 1, 3))"),
    ("work at import", "physkit/core/_x.py", "class A:\n    x = param(jnp.zeros(3))"),
    ("work at import", "physkit/core/_x.py", "def f(x=jnp.zeros(3)): pass"),
    ("work at import", "physkit/core/_x.py", "KEY = jax.random.key(0)"),
    ("docstrings", "physkit/core/_x.py", '"""A module with its docstring."""\nclass A: pass'),
    ("docstrings", "physkit/core/_x.py", '"""A module with its docstring."""\ndef f():\n    "f."'),
    ("docstrings", "physkit/core/_x.py", "x = 1"),
    ("concrete classes", "physkit/simulate/_x.py", "from physkit.particles.forces import Pairwise"),
    ("concrete classes", "physkit/storage/_x.py", "from physkit.observe import Every"),
    ("private words", "physkit/core/_x.py", "def restless(state): pass"),
    ("private words", "physkit/core/_x.py", "def f(bars): pass"),
    ("private words", "physkit/core/_x.py", "x._settled = 1"),
]


@pytest.mark.parametrize(("rule", "path", "text"), BAD)
def test_rule_catches_a_violation(rule, path, text):
    assert PER_FILE[rule](path, text)


GOOD = [
    ("layers", "physkit/observe/_x.py", "from physkit.core import param\nfrom ._y import z"),
    ("banned", "physkit/core/_module.py", "def param(**options): pass"),
    ("private JAX", "physkit/core/numerics/_linear_call.py", "from jax.interpreters import ad"),
    ("work at import", "physkit/core/_x.py", "def f():\n    return jnp.zeros(3)"),
    ("work at import", "physkit/core/_x.py", "N = np.finfo(float)\ng = lambda: jnp.zeros(3)"),
    ("docstrings", "physkit/core/_x.py", '"""A module with its docstring."""\ndef _f(): pass'),
]


@pytest.mark.parametrize(("rule", "path", "text"), GOOD)
def test_rule_allows(rule, path, text):
    assert not PER_FILE[rule](path, text)


def test_a_cycle_of_subfolders_is_found():
    a, b = "physkit/simulate/loop/_a.py", "physkit/simulate/driver/_b.py"
    there, back = "from ..driver._b import f", "from physkit.simulate.loop._a import g"
    assert rules.subfolder_cycles({a: there, b: back})
    assert not rules.subfolder_cycles({a: there, b: ""})


def test_a_crowded_folder_is_found():
    crowd = {f"physkit/core/_{k}.py": "" for k in range(rules.MAX_FILES + 1)}
    assert rules.folder_sizes(crowd)


def test_arguments_of_any_are_counted():
    text = "def f(self, a: Any, b: int, *, c: Any = None): pass"
    assert rules.share_of_any({"x": text}) == 2 / 3


def test_a_cycle_is_found():
    a, b = "physkit/core/_a.py", "physkit/core/_b.py"
    assert rules.cycles({a: "from ._b import f", b: "from physkit.core._a import g"})
    assert not rules.cycles({a: "from ._b import f", b: "def g():\n    from ._a import f"})


def all_modules() -> list[str]:
    walked = pkgutil.walk_packages([str(rules.PACKAGE)], "physkit.")
    return [m.name for m in walked if not m.name.endswith("__main__")]


def misdeclared_classes(classes) -> list[str]:
    """Final classes with subclasses or open methods, and abstract ones that do not say so."""
    found = []
    for cls in classes:
        if inspect.isabstract(cls) and not is_abstract(cls):
            found.append(f"{cls.__name__} has abstract methods but is not named Abstract…")
        # Equinox makes a second class of the same name while an instance is being built.
        parents = [b for b in cls.__mro__[1:] if issubclass(b, Module) and b is not Module]
        final = [b for b in parents if not is_abstract(b) and b.__qualname__ != cls.__qualname__]
        found += [f"{cls.__name__} subclasses the final {b.__name__}" for b in final]
    return found


def test_every_module_is_abstract_or_final():
    classes = set()
    for name in all_modules():
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, type) and issubclass(value, Module):
                classes.add(value)
    assert len(classes) > 10
    assert not misdeclared_classes(classes)


def test_a_misdeclared_class_is_found():
    import abc

    class Nameless(Module):
        @abc.abstractmethod
        def f(self):
            """Left open."""

    assert misdeclared_classes([Nameless])


def in_a_fresh_process(code: str) -> dict:
    """What `code` puts into `found`, run by an interpreter that has imported nothing yet."""
    script = f"import json, sys, time\nfound = {{}}\n{code}\nprint(json.dumps(found))"
    environment = {**os.environ, "PYTHONPATH": str(rules.PACKAGE.parent), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


SLOW_TO_IMPORT = ("jax", "numpy", "scipy", "equinox", "diffrax", "optax", "h5py", "matplotlib")


@pytest.mark.parametrize(
    "code",
    [
        "import physkit",
        "import physkit.cli",
        "from physkit.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass",
        "from physkit.cli import main\ntry:\n    main(['--version'])\nexcept SystemExit:\n    pass",
    ],
)
def test_starts_without_what_is_slow(code):
    # The list of modules is the strict check; CPU time has a wide margin, for a busy machine.
    timed = f"""
began = time.process_time()
{code}
found["seconds"] = time.process_time() - began
found["modules"] = [m for m in {SLOW_TO_IMPORT} if m in sys.modules]
"""
    found = in_a_fresh_process(timed)
    assert found["modules"] == []
    assert found["seconds"] < 1.0


def test_simulations_do_not_wait_for_what_they_do_not_use():
    others = (
        "diffrax",
        "optimistix",
        "lineax",
        "optax",
        "matplotlib",
        "scipy.optimize",
        "xarray",
        "submitit",
    )
    code = f"""
import physkit as pk
force = pk.Pairwise(pk.LennardJones(), cutoff=2.5)
sim = pk.Simulation(pk.VelocityVerlet(force), dt=0.004, observers=[pk.Every(10, energy=pk.TotalEnergy())])
pk.run, pk.simulate, pk.RK4, pk.equations.CompressibleEuler, pk.ParticleMesh, pk.use_compilation_cache
found["modules"] = [m for m in {others} if m in sys.modules]
"""
    assert in_a_fresh_process(code)["modules"] == []


def test_importing_everything_starts_no_device_and_no_matplotlib():
    names = all_modules()  # chapters of the demo, which come last, may draw as they please
    code = f"""
import importlib
for name in sorted({names}, key=lambda name: name.startswith("physkit.cli")):
    if name.startswith("physkit.cli") and "matplotlib" not in found:
        found["matplotlib"] = "matplotlib" in sys.modules
    importlib.import_module(name)
found["pyplot"] = "matplotlib.pyplot" in sys.modules
from jax._src import xla_bridge
found["backends"] = list(xla_bridge._backends)
import jax.numpy
jax.numpy.zeros(1)
found["backends after use"] = list(xla_bridge._backends)
"""
    found = in_a_fresh_process(code)
    assert found["backends"] == []
    assert not found["matplotlib"]
    assert not found["pyplot"]
    assert found["backends after use"], "the check itself does not see backends"
