"""Drawn simulations of particles, in physkit and in `newton`."""

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np

import physkit as pk
from physkit.integrators import EquationsOfMotion, Yoshida

from . import newton

STEPS, INTERVAL = 4, 2
# Name: length, mass, time. The second is atoms in SI, the third planets; powers of two are exact.
UNITS = {
    "one": (1.0, 1.0, 1.0),
    "atoms in SI": (1e-10, 1e-26, 1e-12),
    "planets in SI": (1.5e11, 1e24, 3e7),
    "powers of two": (2.0**-20, 2.0**10, 2.0**-15),
}
PAIR_KINDS = ("lj", "wca", "morse", "yukawa", "soft", "buckingham", "coulomb")


# Users' functions, at module level so that programs are shared.


def wave_force(t, particles, args):
    strength, rate, k = args
    return strength * jnp.cos(rate * t) * jnp.sin(k * particles.unwrapped)


def user_energy(t, particles, args):
    strength, rate, k = args
    return strength / k * jnp.cos(rate * t) * jnp.sum(jnp.cos(k * particles.unwrapped))


def drag_force(t, particles, args):
    return -args * particles.velocity


@dataclasses.dataclass
class Problem:
    sim: pk.Simulation
    state: object
    force: newton.Force
    cell: newton.Cell
    x: np.ndarray
    v: np.ndarray
    m: np.ndarray
    dt: float
    scales: dict[str, float]
    conserved: bool
    swapped: bool
    mobile: np.ndarray


def build(s, n) -> Problem:
    rng = np.random.default_rng(n.seed)
    rounded = lambda x: np.asarray(x, s.dtype).astype(float)  # as physkit gets it
    length, mass, time = UNITS[s.units]
    energy = mass * length**2 / time**2
    d, side = s.dimension, 3 if s.dimension > 1 else 4
    sites = np.stack(np.meshgrid(*[np.arange(side)] * d, indexing="ij"), -1).reshape(-1, d)[
        : s.count
    ]
    x = (sites + 0.5) * 1.15 + rng.uniform(-0.06, 0.06, (s.count, d))
    edges = np.diag(np.full(d, side * 1.15)) + 0.0
    if s.space == "tilted":
        edges[1, 0], edges[-1, 0] = 0.4, edges[-1, 0] + 0.3
    heights = 1 / np.linalg.norm(np.linalg.inv(edges), axis=0)
    periodic = {
        "free": (False,) * d, "box": (True,) * d, "tilted": (True,) * d,
        "partly": (True,) * (d - 1) + (False,) if d > 1 else (False,),
    }[s.space]  # fmt: skip
    cutoff = float(s.reach * heights.min() / 2 * length)
    if n.trouble == "outside":
        x = x + rng.integers(-2, 3, x.shape) * np.where(periodic, 1, 0) @ edges
    if n.trouble == "far away":
        x = x + 300.0
    if n.trouble == "coincident" and s.count > 1:
        x[1] = x[0]
    v = rng.normal(size=x.shape) * n.speed
    m = 1 + n.spread * rng.random(s.count)
    if n.trouble == "zero mass" and s.count:
        m[0] = 0.0
    if n.trouble == "negative mass" and s.count:
        m[-1] = -1.0
    if n.trouble == "nan" and s.count:
        x[-1, 0] = np.nan
    x, v, m = rounded(x * length), rounded(v * length / time), rounded(m * mass)
    edges = rounded(edges * length)
    dt = float(rounded(0.004 * n.dt_factor * time))
    cell = newton.Cell(None if s.space == "free" else edges, periodic)
    space = {
        "free": lambda: pk.Free(),
        "box": lambda: pk.Box(jnp.asarray(np.diag(edges), s.dtype)),
        "partly": lambda: pk.Box(jnp.asarray(np.diag(edges), s.dtype), periodic=periodic),
        "tilted": lambda: pk.Triclinic(jnp.asarray(edges, s.dtype)),
    }[s.space]()

    charge = rounded(rng.choice([-1.0, 1.0], s.count))
    component = "atoms" if s.mistake == "component" else None
    ours, theirs = [], []
    p = lambda low, high, unit=1.0: float(rounded(rng.uniform(low, high) * unit))
    P = lambda x: jnp.asarray(x, s.dtype)
    for name in s.forces:
        if name in PAIR_KINDS:
            a, b, c = p(0.7, 1.3, energy), p(0.9, 1.05, length), 0.0
            if name == "morse":
                c = p(3.0, 5.0, 1 / length)
                potential, reference = pk.potentials.Morse(P(a), P(c), P(b)), newton.morse(a, c, b)
            elif name == "yukawa":
                a = p(0.7, 1.3, energy * length)
                potential, reference = pk.potentials.Yukawa(P(a), P(b)), newton.yukawa(a, b)
            elif name == "soft":
                c = p(6.0, 12.0)
                potential = pk.potentials.SoftSphere(P(a), P(b), P(c))
                reference = newton.soft_sphere(a, b, c)
            elif name == "buckingham":
                b, c = p(0.2, 0.25, length), p(0.5, 1.0, energy * length**6)
                a = p(500.0, 900.0, energy)
                potential = pk.potentials.Buckingham(P(a), P(b), P(c))
                reference = newton.buckingham(a, b, c)
            elif name == "coulomb":
                a = p(0.7, 1.3, energy * length)
                potential, reference = pk.Coulomb(P(a), P(b)), newton.yukawa(a, b)
            elif name == "wca":
                potential, reference = pk.potentials.WCA(P(a), P(b)), newton.wca(a, b)
            else:
                potential, reference = pk.LennardJones(P(a), P(b)), newton.lennard_jones(a, b)
            more = {} if s.use_list else {"use_neighbor_list": False}
            if s.use_list and n.verb in ("simulate", "vmap"):
                more["capacity"] = max(1, s.count)
            force = pk.Pairwise(
                potential,
                cutoff,
                truncation=s.truncation,
                exact=s.exact,
                component=component,
                **more,
            )
            rc = float(np.asarray(cutoff, s.dtype))
            theirs.append(
                newton.pairs(
                    *reference, rc, s.truncation, cell, charge if name == "coulomb" else None
                )
            )
        elif name == "trap":
            k, center = p(0.5, 2.0, energy / length**2), rounded(np.full(d, 1.7) * length)
            force = pk.HarmonicTrap(P(k), P(center), component=component)
            theirs.append(newton.trap(k, center, cell))
        elif name == "uniform":
            g = rounded(rng.normal(size=d) * length / time**2)
            force = pk.UniformAcceleration(P(g), component=component)
            theirs.append(newton.uniform(g, m[:, None][:, 0]))
        elif name in ("wave", "user"):
            strength, rate, k = (
                p(0.5, 2.0, energy / length),
                p(0.5, 9.0, 1 / time),
                p(0.5, 2.0, 1 / length),
            )
            args = (P(strength), P(rate), P(k))
            # An energy by itself could be one of particles among themselves, whose virial counts.
            outside = functools.partial(pk.ExternalEnergy, outside=True)
            kind = pk.ExternalForce if name == "wave" else outside
            force = kind(wave_force if name == "wave" else user_energy, args, component=component)
            theirs.append(_wave(strength, rate, k))
        elif name == "gravity":
            g, soft = p(0.5, 2.0, length**3 / mass / time**2), p(0.05, 0.2, length)
            force = pk.DirectGravity(P(g), P(soft), component=component)
            theirs.append(newton.gravity(g, soft, m))
        else:
            k, rest = p(20.0, 90.0, energy / length**2), p(1.0, 1.2, length)
            index = [(i, i + 1) for i in range(min(s.count - 1, 3))] or [(0, 1)]
            force = pk.HarmonicBonds(index, P(k), P(rest), component=component)
            theirs.append(newton.bonds(index if s.count > 1 else [], k, rest, cell))
        ours.append(force)
    # Its noise pushes every particle by itself.
    conserved = s.integrator != "baoab" and all(f.conserves_momentum for f in ours)
    if s.mistake == "velocity":
        gamma = p(0.5, 1.0, mass / time)
        ours.append(pk.ExternalForce(drag_force, P(gamma), component=component))
        theirs.append(_drag(gamma))
        conserved = False
    integrator = _integrator(s, ours)
    frozen = None
    mobile = np.ones(s.count, bool)
    if s.frozen and s.count > 1:
        mobile[-1] = False
        frozen = ~mobile
        v[-1] = 0.0
    state = pk.Particles(
        P(x), P(v), P(m), space, frozen=frozen,
        charge=None if s.mistake == "no charge" or "coulomb" not in s.forces else P(charge),
    )  # fmt: skip
    quantities = {
        "potential": pk.PotentialEnergy(), "kinetic": pk.KineticEnergy(), "total": pk.TotalEnergy(),
        "momentum": pk.quantities.Momentum(), "temperature": pk.Temperature(),
    }  # fmt: skip
    if "wave" in s.forces or s.mistake == "velocity":
        quantities = {
            k: q for k, q in quantities.items() if k in ("kinetic", "momentum", "temperature")
        }
    elif cell.vectors is not None and all(periodic):
        quantities |= {"pressure": pk.Pressure(), "stress": pk.quantities.StressTensor()}
    sim = pk.Simulation(integrator, P(dt), observers=[pk.Every(INTERVAL, **quantities)])
    volume = abs(np.linalg.det(edges))
    speed = length / time * max(1.0, n.speed)
    kinetic = energy * max(1.0, n.speed**2) * max(1, s.count) * (1 + n.spread)
    scales = {
        "x": length * max(1.0, np.max(np.abs(x / length), initial=0.0)), "v": speed,
        "potential": kinetic * 5, "kinetic": kinetic, "total": kinetic * 5, "temperature": kinetic,
        "momentum": mass * speed * max(1, s.count) * (1 + n.spread),
        "pressure": kinetic * 20 / volume, "stress": kinetic * 20 / volume,
    }  # fmt: skip
    return Problem(
        sim,
        state,
        newton.add(theirs),
        cell,
        x,
        v,
        m,
        dt,
        scales,
        conserved,
        s.mistake == "swapped",
        mobile,
    )


def _wave(strength, rate, k):
    def force(x, v, t):
        a = strength * np.cos(rate * t)
        d = x.shape[1]
        return newton.Total(
            a * np.sin(k * x), float(a / k * np.sum(np.cos(k * x))), np.zeros((d, d))
        )

    return force


def _drag(gamma):
    return lambda x, v, t: newton.Total(-gamma * v, 0.0, np.zeros((x.shape[1],) * 2))


def _integrator(s, forces):
    total = functools.reduce(lambda a, b: a + b, forces)
    if s.mistake == "split":
        others = functools.reduce(lambda a, b: a + b, forces[1:] or [pk.HarmonicTrap(0.0)])
        return pk.Strang(pk.VelocityVerlet(forces[0]), pk.VelocityVerlet(others))
    return {
        "verlet": lambda: pk.VelocityVerlet(total),
        "leapfrog": lambda: pk.Leapfrog(total),
        "yoshida": lambda: Yoshida(total),
        "rk4": lambda: pk.RK4(EquationsOfMotion(total)),
        "twice": lambda: pk.Subcycle(pk.VelocityVerlet(total), 2),
        "baoab": lambda: pk.BAOAB(total, 0.0, 0.0),
    }[s.integrator]()


STEPPERS = {
    "verlet": newton.verlet, "leapfrog": newton.leapfrog, "yoshida": newton.yoshida,
    "rk4": newton.rk4, "twice": newton.twice, "baoab": newton.verlet,
}  # fmt: skip


def reference(s, p: Problem, x: np.ndarray):
    """Positions, velocities and the frames of every observation."""
    step = newton.rk4 if s.mistake in ("velocity", "split") else STEPPERS[s.integrator]
    stepper = lambda x, v, t: step(p.force, x, v, _heavy(p), t, p.dt)
    v, frames = p.v, []
    with np.errstate(all="ignore"):
        for k in range(STEPS + 1):
            if k:
                x, v = stepper(x, v, (k - 1) * p.dt)
            if k % INTERVAL == 0:
                moving = p.mobile[:, None]
                now = newton.quantities(
                    p.force, x, v * moving, p.m[:, None], k * p.dt, p.cell,
                    p.conserved and bool(np.all(p.mobile)), s.dimension,
                )  # fmt: skip
                if not np.all(p.mobile):
                    count = int(p.mobile.sum())
                    now["temperature"] = (
                        2 * now["kinetic"] / (s.dimension * count) if count else np.nan
                    )
                frames.append(now)
    return x, v, {k: np.array([f[k] for f in frames]) for k in frames[0]}


def _heavy(p: Problem):
    """Masses as columns; what is frozen does not move."""
    return np.where(p.mobile, p.m, np.inf)[:, None]
