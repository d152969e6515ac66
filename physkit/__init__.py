"""physkit: simulations as Python scripts on differentiable arrays.

Everything that scripts use is reachable as `pk.Name`. Names are fetched from their folder on first
use, so that `import physkit` – and `physkit --help` – does not wait for JAX.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

# Folder → the names that scripts use as `pk.Name`; `__init__.pyi` says the same to type checkers.
_EXPORTS: dict[str, tuple[str, ...]] = {
    "core": (
        "Module",
        "param",
        "data",
        "static",
    ),
    "geometry": ("AbstractSpace", "Box", "Free", "Triclinic"),
    "particles": ("Particles",),
    "integrators": ("AbstractIntegrator", "AbstractOneStep", "VelocityVerlet"),
    "observe": ("Every", "Finite", "Guard", "Snapshot"),
}
_FOLDERS = (
    "core",
    "parallel",
    "geometry",
    "particles",
    "integrators",
    "observe",
    "simulate",
    "testing",
    "cli",
)
_HOME = {name: folder for folder, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"physkit.{_HOME[name]}"), name)
    elif name in _FOLDERS:
        value = importlib.import_module(f"physkit.{name}")
    else:
        raise AttributeError(f"physkit has no {name!r}")
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({"__version__", *_HOME, *_FOLDERS})
