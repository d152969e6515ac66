"""Draws of particles: space × forces × integrator × verb × precision, against `newton`."""

import dataclasses

import jax
import numpy as np

import physkit as pk

from .outcome import Outcome, compare, judge, show_fields
from .particle_problems import PAIR_KINDS, STEPS, UNITS, Problem, build, reference
from .verbs import advance

TOO_FAST = r"time step|dt|moved further|overlap|finite|range|diverge"


@dataclasses.dataclass(frozen=True)
class Structure:
    """What programs are compiled for; shared by a block of draws."""

    dimension: int
    space: str
    count: int
    forces: tuple[str, ...]
    integrator: str
    dtype: str
    units: str
    truncation: str
    reach: float  # cutoff over half the smallest height of the cell
    use_list: bool
    exact: bool
    mistake: str
    frozen: bool
    devices: bool

    def __str__(self) -> str:
        return f"particles: {show_fields(self)}"


def draw_structure(rng: np.random.Generator, block: int) -> Structure:
    del block
    pick = lambda *options: options[rng.integers(len(options))]
    dimension = pick(2, 3, 3, 1)
    space = pick("free", "box", "box", "partly", "tilted" if dimension > 1 else "box")
    forces = [pick("pair", "pair", "trap", "uniform", "wave", "bonds", "gravity", "user")]
    forces += [f for f in [pick("", "trap", "uniform", "pair", "bonds")] if f and f not in forces]
    if "gravity" in forces and space != "free":
        forces = [f for f in forces if f != "gravity"] or ["pair"]
    forces = [pick(*PAIR_KINDS) if f == "pair" else f for f in forces]
    side = 3 if dimension > 1 else 4
    whole = side**dimension
    count = pick(whole, whole, whole, whole, min(5, whole), 2, 1, 0)
    periodic = space in ("box", "partly", "tilted")
    mistake = pick(*[""] * 12, "component", "swapped", "no charge", "split", "velocity")
    return Structure(
        dimension, space, count, tuple(forces),
        pick("verlet", "verlet", "leapfrog", "yoshida", "rk4", "twice", "baoab"),
        pick("float32", "float64"), pick("one", "one", *UNITS),
        pick("shifted-force", "shifted", "switch", "plain"),
        pick(0.6, 0.8, 0.95, 0.999, 1.0, 1.02, 1.5) if periodic else 0.9,
        bool(rng.integers(2)), bool(rng.integers(4) == 0), mistake,
        bool(rng.integers(6) == 0), space in ("box", "tilted") and bool(rng.integers(3) == 0),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Numbers:
    """What changes from draw to draw, in units of one."""

    seed: int
    verb: str
    dt_factor: float
    trouble: str
    spread: float  # of masses
    speed: float

    __str__ = show_fields


def draw_numbers(rng: np.random.Generator, place: int) -> Numbers:
    pick = lambda *options: options[rng.integers(len(options))]
    verb = {0: "run", 1: "vmap", 2: "devices"}.get(place, "simulate")
    trouble = pick(
        *[""] * 8, "outside", "coincident", "zero mass", "negative mass", "nan", "far away"
    )
    return Numbers(
        int(rng.integers(2**31)), verb, pick(1.0, 1.0, 1.0, 1.0, 10.0, 100.0, 0.0, -1.0),
        trouble, pick(0.0, 1.0, 50.0), pick(0.0, 1.0, 1.0, 1.0, 30.0),
    )  # fmt: skip


_warned: set[Structure] = set()  # structures whose programs have warned


def examine(s: Structure, n: Numbers) -> Outcome:
    causes = expected_causes(s, n)
    outcome = judge(lambda: difference(s, n, causes), causes)
    if outcome.kind == "named" and outcome.text.startswith("warning"):
        _warned.add(s)
    # A program warns when it is traced, and a block has it traced once.
    if outcome.is_finding and s.mistake == "velocity" and s in _warned:
        return Outcome("named", "warned before")
    return outcome


def expected_causes(s: Structure, n: Numbers) -> list[str]:
    """What physkit may say of this draw."""
    causes = []
    pair = any(f in PAIR_KINDS for f in s.forces)
    if s.mistake == "component":
        causes.append("component")
    if s.mistake == "swapped":
        causes.append("simulation|order|state|swap")
    if s.mistake == "no charge" and "coulomb" in s.forces:
        causes.append("charge")
    if s.mistake == "split":
        causes.append("VelocityVerlet|drift")
    if s.mistake == "velocity":
        causes.append("velocit")
    if n.trouble in ("zero mass", "negative mass"):
        causes.append("mass")
    if n.trouble == "nan":
        causes.append("finite|nan")
    if n.trouble == "coincident":
        causes.append("overlap|on top")
    if abs(n.dt_factor) >= 10 or n.speed > 1:
        causes.append(TOO_FAST)
    if pair and s.space in ("box", "partly", "tilted") and s.reach > 0.99:
        causes.append("cutoff|image")
    if pair and s.exact and n.trouble == "coincident":
        causes.append("range")
    if s.count == 0:
        causes.append("no particles|zero particles|empty|0 particles")
    if s.count < 3 and "bonds" in s.forces:
        causes.append("bond|particle")
    if n.dt_factor <= 0:
        causes.append("time step must be positive")
    if n.verb == "devices":
        causes.append("device|slab|halo|single|order|divide|margin")
    # Dispersion of 1e-82 J m⁶.
    tiny = s.units == "atoms in SI" and "buckingham" in s.forces
    if (s.units == "planets in SI" or tiny) and s.dtype == "float32":
        causes.append("float32|precision|range of|largest|smallest")
    return causes


def difference(s: Structure, n: Numbers, causes) -> str:
    """What physkit's numbers have that the reference has not."""
    p = build(s, n)
    key = jax.random.key(0) if s.integrator == "baoab" else None
    if p.swapped:
        pk.run(p.state, p.sim, STEPS, progress=False)
        return "run(state, sim) was accepted"
    # A batch of three: positions, velocities and masses differ from member to member.
    others = [dataclasses.replace(n, seed=n.seed + k) for k in (1, 2)] if s.count else []
    states = [p.state, *(build(s, o).state for o in others if n.verb == "vmap")]
    verb = "simulate" if n.verb == "devices" and not s.devices else n.verb
    read = lambda state: [state.position]
    state, frames = advance(p.sim, states, STEPS, verb, causes, read, key)
    return compare_with_reference(s, p, state, frames)


def compare_with_reference(s: Structure, p: Problem, state, frames) -> str:
    x, v, expected = reference(s, p, p.x)
    epsilon = np.finfo(s.dtype).eps
    # A neighboring start shows how far rounding errors grow.
    shift = np.random.default_rng(5).uniform(-1, 1, x.shape) * 16 * epsilon * p.scales["x"]
    x2, v2, expected2 = reference(s, p, p.x + shift)
    got_x, got_v = np.asarray(state.unwrapped, float), np.asarray(state.velocity, float)
    text = ""
    for name, got, want, near in [
        ("x", got_x, x, x2), ("v", got_v, v, v2),
        *[(k, frames[k], expected[k], expected2[k]) for k in frames],
    ]:  # fmt: skip
        with np.errstate(all="ignore"):
            growth = np.max(np.abs(near - want), initial=0.0)
            size = max(p.scales[name], np.max(np.abs(want), initial=0.0))
            if name == "momentum":  # what cancels in the sum: Σ m |v| ≤ √(2 K M)
                size = max(size, float(np.sqrt(2 * np.max(expected["kinetic"]) * np.sum(p.m))))
        if not np.isfinite(growth) or growth > 0.02 * size:
            return "chaotic, or beyond the range of numbers"
        text += compare(name, got, want, 128 * epsilon * size + 10 * growth)
    return text
