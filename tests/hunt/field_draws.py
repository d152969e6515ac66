"""Draws of fields: equation × grid × walls × scheme × integrator × precision, against `grids`."""

import dataclasses

import numpy as np

import physkit as pk

from .field_problems import STEPS, UNITS, build
from .outcome import Outcome, compare, judge, show_fields
from .verbs import advance

UNSTABLE = r"finite|diverge|time step|too long|courant|positive"
EQUATIONS = ("diffusion", "advection", "burgers", "wave", "schroedinger", "kdv", "fisher", "grayscott",
             "own", "vorticity", "navierstokes", "gas")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Structure:
    """What programs are compiled for."""

    equation: str
    shape: tuple[int, ...]
    walls: str
    place: str
    scheme: str
    integrator: str
    dtype: str
    units: str
    mistake: str
    devices: bool

    def __str__(self) -> str:
        return f"fields: {show_fields(self)}"


@dataclasses.dataclass(frozen=True)
class Numbers:
    """What changes from draw to draw."""

    seed: int
    verb: str
    dt_factor: float
    trouble: str
    wall: float
    amplitude: float

    __str__ = show_fields


def draw_structure(rng: np.random.Generator, block: int) -> Structure:
    pick = lambda *options: options[rng.integers(len(options))]
    equation = EQUATIONS[block % len(EQUATIONS)]
    dimension = {
        "burgers": 1,
        "kdv": 1,
        "schroedinger": pick(1, 2),
        "vorticity": 2,
        "navierstokes": 2,
    }
    d = dimension.get(equation, pick(1, 1, 2))
    walls = "periodic"
    if equation in ("diffusion", "fisher", "wave", "own"):
        walls = pick("periodic", "dirichlet", "neumann")
    scheme = pick("spectral", "central") if walls == "periodic" else "central"
    methods = ["euler", "heun", "ssprk3", "rk4"]
    if scheme == "spectral" and equation in ("diffusion", "burgers", "kdv", "fisher", "vorticity"):
        methods += ["etdrk2", "etdrk4"]
    if scheme == "spectral" and equation == "diffusion":
        methods += ["exact"]
    smallest = 12 if equation in ("kdv", "burgers", "vorticity", "navierstokes") else 5
    shape = tuple(int(rng.integers(smallest, 18)) for _ in range(d))
    if equation in ("diffusion", "own") and rng.integers(5) == 0:
        shape = (pick(1, 2, 3),) * d
    place = (
        pick("cell", "cell", "face") if equation == "diffusion" and walls == "dirichlet" else "cell"
    )
    return Structure(
        equation, shape, walls, place, scheme,
        pick("euler", "heun") if place == "face" else pick(*methods),
        pick("float32", "float64"), pick("one", "one", *UNITS),
        pick(*[""] * 12, "component", "swapped", "negative", "vector"), bool(rng.integers(3) == 0),
    )  # fmt: skip


def draw_numbers(rng: np.random.Generator, place: int) -> Numbers:
    pick = lambda *options: options[rng.integers(len(options))]
    verb = {0: "run", 1: "vmap", 2: "devices"}.get(place, "simulate")
    return Numbers(
        int(rng.integers(2**31)), verb, pick(1.0, 1.0, 1.0, 1.0, 10.0, 100.0),
        pick(*[""] * 8, "nan", "zero", "constant"), pick(0.0, 1.0, -2.5), pick(0.0, 0.1, 1.0, 1.0),
    )  # fmt: skip


def examine(s: Structure, n: Numbers) -> Outcome:
    causes = expected_causes(s, n)
    return judge(lambda: difference(s, n, causes), causes)


def expected_causes(s: Structure, n: Numbers) -> list[str]:
    causes = []
    if s.mistake == "component":
        causes.append("component")
    if s.mistake == "swapped":
        causes.append("simulation|order|state|swap")
    if s.mistake == "negative":
        causes.append("negative|positive|diffusiv|viscos|≥ 0")
    if s.mistake == "vector":
        causes.append("vector|scalar|component|shape|one number")
    if n.trouble == "nan":
        causes.append("finite|nan")
    if n.dt_factor > 1:
        causes.append(UNSTABLE)
    if n.verb == "devices":
        causes.append("device|divide|cells|ghost")
    if min(s.shape) < 5:
        causes.append("cells|points|ghost|stencil|small")
    return causes


def difference(s: Structure, n: Numbers, causes) -> str:
    """What physkit's numbers have that the reference has not."""
    p = build(s, n)
    if s.mistake == "swapped":
        pk.run(p.state, p.sim, STEPS, progress=False)
        return "run(state, sim) was accepted"
    first = np.asarray(p.read(p.state), float)
    verb = "simulate" if n.verb == "devices" and not s.devices else n.verb
    states = [p.state] * (2 if verb == "vmap" else 1)
    state, _ = advance(p.sim, states, STEPS, verb, causes, lambda state: [p.read(state)])
    last = np.asarray(p.read(state), float)
    if n.trouble == "nan":
        return "" if np.isnan(last).any() else "a NaN at the start is gone at the end"
    if p.check is not None:
        return p.check(first, last)
    with np.errstate(all="ignore"):
        expected = p.expected()
        near = np.max(np.abs(expected), initial=0.0)
        size = max(p.scale, near)
        epsilon = np.finfo(s.dtype).eps
        growth = np.max(np.abs(p.expected(16 * epsilon * size) - expected), initial=0.0)
    if not np.isfinite(growth) or near > 1e3 * p.scale or growth > 0.02 * size:
        return "chaotic: the method is unstable here"
    if s.mistake == "vector" and last.shape == (3, *expected.shape):
        expected = np.stack([expected] * 3)  # an equation of each component by itself
    return compare("u", last, expected, (256 * epsilon + p.exact_to) * size + 10 * growth)
