"""Draws of particles with fields: transfers, meshes, drag, tracers, a term of one's own, against `clouds`."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk
from physkit.integrators import EquationsOfMotion, Heun

from . import clouds, grids, newton
from .outcome import Outcome, compare, judge, show_fields
from .verbs import advance

STEPS = 4
UNITS = {
    "one": (1.0, 1.0, 1.0),
    "plasma in SI": (1e-4, 1e-30, 1e-9),
    "stars in SI": (1e20, 1e30, 1e14),
    "powers of two": (2.0**-20, 2.0**10, 2.0**-15),
}
KINDS = ("transfer", "mesh", "gravity", "drag", "tracers", "own")
KERNELS = {1: pk.kernels.Nearest, 2: pk.kernels.CIC, 3: pk.kernels.TSC, 4: pk.kernels.PCS}
MISTAKES = {
    "transfer": ("precision", "dimension"), "mesh": ("box", "no charge", "component"),
    "gravity": ("box", "component"), "drag": ("component", "swapped", "scalar", "box"),
    "tracers": ("component", "swapped", "scalar", "box"), "own": ("component", "swapped", "box"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Structure:
    """What programs are compiled for; shared by a block of draws."""

    kind: str
    shape: tuple[int, ...]
    walls: str
    staggered: bool
    order: int
    scheme: str
    integrator: str
    conserves: str
    deconvolved: bool
    exact: bool
    count: int
    dtype: str
    units: str
    mistake: str
    devices: bool

    def __str__(self) -> str:
        return f"coupling: {show_fields(self)}"


@dataclasses.dataclass(frozen=True)
class Numbers:
    """What changes from draw to draw."""

    seed: int
    verb: str
    dt_factor: float
    trouble: str
    speed: float

    __str__ = show_fields


def draw_structure(rng: np.random.Generator, block: int) -> Structure:
    pick = lambda *options: options[rng.integers(len(options))]
    kind = KINDS[block % len(KINDS)]
    d = pick(1, 2, 2) if kind != "tracers" else pick(1, 2)
    shape = tuple(int(n) for n in rng.integers(4, 11, d))
    walls = pick("periodic", "periodic", "dirichlet", "neumann")
    if kind in ("mesh", "gravity", "own"):  # the gradient of a field has no boundary of its own
        walls = "periodic"
    methods = {"mesh": ("verlet", "leapfrog", "rk4"), "transfer": ("euler",)}
    methods["gravity"] = methods["mesh"]
    staggered = kind == "transfer" and bool(rng.integers(3) == 0)
    return Structure(
        kind, shape, walls, staggered, pick(1, 2, 2, 3, 4),
        pick("central2", "central4", "spectral"),
        pick(*methods.get(kind, ("euler", "heun", "rk4"))),
        pick("momentum", "momentum", "energy"), bool(rng.integers(5) == 0), bool(rng.integers(4) == 0),
        pick(1, 2, 7, 30, 30, 90), pick("float32", "float64"), pick("one", "one", *UNITS),
        pick(*[""] * 8, *MISTAKES[kind]), walls == "periodic" and bool(rng.integers(2)),
    )  # fmt: skip


def draw_numbers(rng: np.random.Generator, place: int) -> Numbers:
    pick = lambda *options: options[rng.integers(len(options))]
    verb = {0: "run", 1: "vmap", 2: "devices"}.get(place, "simulate")
    return Numbers(
        int(rng.integers(2**31)), verb, pick(1.0, 1.0, 1.0, 1.0, 10.0, 0.0),
        pick(*[""] * 8, "outside", "coincident", "nan", "zero mass"), pick(0.0, 1.0, 1.0, 20.0),
    )  # fmt: skip


def examine(s: Structure, n: Numbers) -> Outcome:
    causes = expected_causes(s, n)
    return judge(lambda: difference(s, n, causes), causes)


def expected_causes(s: Structure, n: Numbers) -> list[str]:
    causes = []
    named = {
        "precision": "precision|float", "dimension": r"\[n, \d\]|dimension", "box": "box|periodic|space|finite",
        "no charge": "charge", "component": "component", "swapped": "particles and|particles, not|component",
        "scalar": "vector|scalar|velocity|components|vorticity",  # a flow by its vorticity is a scalar
    }  # fmt: skip
    if s.mistake:
        causes.append(named[s.mistake])
    if s.kind != "transfer" and n.dt_factor == 0:
        causes.append("time step must be positive")
    if n.trouble == "zero mass":
        causes.append("mass")
    if n.trouble == "nan":
        causes.append("finite|nan")
    if n.verb == "devices":
        causes.append("device|divide|cells|ghost|slab|slot")
    if n.dt_factor > 1 or n.speed > 1:
        causes.append("finite|diverge|time step|too long|range")
    if s.units != "one" and s.dtype == "float32":
        causes.append("float32|precision|range|finite")  # squares of 1e20 m
    return causes


@dataclasses.dataclass
class Problem:
    """`start` and what `read` gives are lists of arrays; so are `scales`."""

    sim: object  # a simulation, or for transfers a function of the particles
    state: object
    read: object
    start: list[np.ndarray]
    advance: object  # (start) → arrays after all steps
    scales: list[float]
    frames: dict[str, tuple]  # name → (of the arrays: a number, its scale)


class Grazing(pk.AbstractTendency):
    """dx/dt = χ ∇c at every grazer,   dc/dt = −κ (density of grazers) c."""

    order: int = pk.static()
    chi: jax.Array = pk.param()
    kappa: jax.Array = pk.param()
    grazers: str = pk.static(default="grazers")
    grass: str = pk.static(default="grass")

    def rate(self, clock, state):
        grazers, grass = state[self.grazers], state[self.grass]
        kernel = KERNELS[self.order]()
        slope = pk.interpolate(pk.operators.gradient(grass, pk.schemes.Central(2)), grazers, kernel)
        eaten = pk.deposit(self.kappa * grazers.mass, grazers, grass, kernel) * grass
        return {
            self.grazers: pk.components.ParticleIncrement(position=self.chi * slope),
            self.grass: -eaten,
        }


def build(s: Structure, n: Numbers) -> Problem:
    rng = np.random.default_rng(n.seed)
    rounded = lambda x: np.asarray(x, s.dtype).astype(float)
    P = lambda x: jnp.asarray(x, s.dtype)
    p = lambda low, high, unit=1.0: float(rounded(rng.uniform(low, high) * unit))
    length, mass, time = UNITS[s.units]
    d, speed = len(s.shape), length / time
    lengths = rounded(np.array([1.0, 1.3])[:d] * length)
    x = rng.uniform(0, 1, (s.count, d)) * lengths
    if n.trouble == "outside" and (s.order > 1 or s.walls == "periodic"):
        x = x + rng.integers(-2, 3, x.shape) * lengths
    if n.trouble == "coincident" and s.count > 1:
        x[1] = x[0]
    if n.trouble == "nan":
        x[-1, 0] = np.nan
    m = (1 + rng.random(s.count)) * mass
    if n.trouble == "zero mass":
        m[0] = 0.0
    v = 0.1 * n.speed * rng.normal(size=x.shape) * speed
    x, v, m = rounded(x), rounded(v), rounded(m)
    q = rounded(rng.choice([-1.0, 1.0, 2.0], s.count))
    periodic = s.walls == "periodic"
    box = pk.Box(P(lengths), periodic=periodic)
    grid, kernel = pk.Grid(box, s.shape), KERNELS[s.order]()
    space = pk.Box(P(lengths * 1.5), periodic=periodic) if s.mistake == "box" else box
    dt = float(rounded(0.02 * n.dt_factor * time))
    mine = (s, n, rng, rounded, P, p)
    if s.kind in ("mesh", "gravity"):
        axes = [clouds.Axis(c, l, ("periodic", 0, 0)) for c, l in zip(s.shape, lengths)]
        return _mesh(mine, axes, grid, space, kernel, x, v, m, q, dt, (length, mass, time))
    atoms = pk.Particles(P(x), P(v), P(m), space)
    # Values on walls, or slopes; those of the flow and of the grass are in units of theirs.
    unit = 1.0 if s.kind in ("own", "transfer") else speed
    low, high = p(0, 1, unit), p(0, 1, unit)
    if s.walls == "neumann":
        low, high = float(rounded(low / length)), float(rounded(high / length))
    kind = pk.boundaries.Dirichlet if s.walls == "dirichlet" else pk.boundaries.Neumann
    boundary = None if periodic else {a: (kind(P(low)), kind(P(high))) for a in "xy"[:d]}
    axes = [
        clouds.Axis(c, l, (s.walls, low, high), s.staggered and k == 0)
        for k, (c, l) in enumerate(zip(s.shape, lengths))
    ]
    parts = 1 if s.kind == "own" or s.mistake == "scalar" else d
    u = rounded(rng.uniform(0.5, 1.5, (parts, *[a.count for a in axes])) * unit)
    if s.staggered and s.walls == "dirichlet":
        u[:, 0], u[:, -1] = low, high
    vector = s.kind != "own" and s.mistake != "scalar"
    place = grid.face(0) if s.staggered else grid.cell
    field = pk.Field(P(u if vector else u[0]), grid, place, boundary, vector=vector)
    if s.kind == "transfer":
        return _transfer(s, field, atoms, kernel, axes, x, m, u, P, mass, length)
    names = ("particles", "fluid") if s.mistake != "swapped" else ("fluid", "particles")
    if s.mistake == "component":
        names = ("particles", "water")
    state = {"particles": atoms, "fluid": field}
    read = lambda state: [
        state["particles"].unwrapped, state["particles"].velocity,
        state["fluid"].data.reshape(u.shape),
    ]  # fmt: skip
    from_grid = lambda u, x: clouds.interpolate(u, x, axes, s.order)
    to_grid = lambda q, x: clouds.deposit(q, x, axes, s.order)
    if s.kind == "tracers":
        term = pk.mesh.PassiveTracers(names[1], names[0], kernel)
        rate = lambda y, t: [from_grid(y[2], y[0]), 0 * y[1], 0 * y[2]]
    elif s.kind == "drag":
        gamma, rho = p(0.5, 2, 1 / time), p(1, 2, mass * s.count / length**d)
        term = pk.Drag(P(gamma), *names, density=P(rho), kernel=kernel, moving=True)

        def rate(y, t):
            gain = gamma * (from_grid(y[2], y[0]) - y[1])
            return [y[1], gain, -to_grid(m[:, None] * gain, y[0]) / rho]
    else:
        chi = p(0.1, 0.3, length**2 / time)
        kappa = p(0.5, 1, length**d / mass / time / s.count)
        term = Grazing(s.order, P(chi), P(kappa), *names)

        def rate(y, t):
            slopes = [grids.first(y[2][0], k, a.h, a.walls, False) for k, a in enumerate(axes)]
            drift = chi * from_grid(np.stack(slopes), y[0])
            return [drift, 0 * y[1], -to_grid(kappa * m[:, None], y[0]) * y[2]]

    method = {"euler": pk.Euler, "heun": Heun, "rk4": pk.RK4}[s.integrator]
    step = {"euler": grids.euler, "heun": grids.heun, "rk4": grids.rk4}[s.integrator]

    def steps(start):
        sizes = np.cumsum([a.size for a in start])[:-1]
        flat = lambda arrays: np.concatenate([np.ravel(a) for a in arrays])
        cut = lambda y: [b.reshape(a.shape) for a, b in zip(start, np.split(y, sizes))]
        y = flat(start)
        for k in range(STEPS):
            y = step(lambda y, t: flat(rate(cut(y), t)), y, k * dt, dt)
        return cut(y)

    sim = pk.Simulation(method(term), P(dt))
    scales = [length, speed * max(1, n.speed), unit]
    return Problem(sim, state, read, [x, v, u], steps, scales, {})


def _mesh(mine, axes, grid, space, kernel, x, v, m, q, dt, units) -> Problem:
    s, n, _, rounded, P, p = mine
    length, mass, time = units
    d = len(axes)
    pull = mass * length**d / time**2  # of unit charges
    charged = s.kind == "mesh"
    strength = float(rounded(1 / pull)) if charged else p(0.1, 0.3, length**d / mass / time**2)
    interaction = pk.mesh.Electrostatics if charged else pk.mesh.Gravity
    scheme = {
        "central2": pk.schemes.Central(2), "central4": pk.schemes.Central(4),
        "spectral": pk.schemes.Spectral(),
    }[s.scheme]  # fmt: skip
    force = pk.ParticleMesh(
        grid, interaction(P(strength)), kernel, scheme=scheme, conserves=s.conserves,
        deconvolved=s.deconvolved, exact=s.exact, component="ions" if s.mistake == "component" else None,
    )  # fmt: skip
    green = (lambda k2: 1 / (strength * k2)) if charged else (lambda k2: -4 * np.pi * strength / k2)
    mesh = clouds.Mesh(
        q if charged else m, axes, s.order, s.scheme, green, s.conserves, s.deconvolved
    )
    with_charge = charged and s.mistake != "no charge"
    state = pk.Particles(P(x), P(v), P(m), space, charge=P(q) if with_charge else None)
    ours, step = {
        "verlet": (pk.VelocityVerlet, newton.verlet), "leapfrog": (pk.Leapfrog, newton.leapfrog),
        "rk4": (lambda f: pk.RK4(EquationsOfMotion(f)), newton.rk4),
    }[s.integrator]  # fmt: skip
    observers = pk.Every(
        STEPS, potential=pk.PotentialEnergy(), kinetic=pk.KineticEnergy(), pressure=pk.Pressure()
    )
    sim = pk.Simulation(ours(force), P(dt), observers=observers)

    def steps(start):
        x, v = start
        for k in range(STEPS):
            x, v = step(mesh, x, v, m[:, None], k * dt, dt)
        return [x, v]

    energy = mass * (length / time) ** 2 * s.count * max(1, n.speed**2) * (1 + s.count) * 10
    volume = float(np.prod([a.length for a in axes]))
    kinetic = lambda v: 0.5 * float(np.sum(m[:, None] * v**2))
    pressure = lambda y: (2 * kinetic(y[1]) + np.trace(mesh.virial(y[0]))) / (d * volume)
    frames = {
        "potential": (lambda y: mesh.energy(y[0], axes), energy),
        "kinetic": (lambda y: kinetic(y[1]), energy),
        "pressure": (pressure, energy / volume),
    }
    read = lambda state: [state.unwrapped, state.velocity]
    scales = [length, length / time * max(1, n.speed)]
    return Problem(sim, state, read, [x, v], steps, scales, frames)


def _transfer(s, field, atoms, kernel, axes, x, m, u, P, mass, length) -> Problem:
    """No simulation: what a field gives to particles, and they to it."""
    wrong = "float32" if s.dtype == "float64" else "float64"
    if s.mistake == "precision":
        field = field.replace(data=field.data.astype(wrong))

    def transfer(atoms):
        at = atoms.position
        if s.mistake == "dimension":
            at = jnp.concatenate([at, at[:, :1]], 1)
        rows = jnp.stack([atoms.mass, 2 * atoms.mass, -atoms.mass], -1)
        density = pk.deposit(rows, at, field, kernel, exact=s.exact)
        return [pk.interpolate(field, at, kernel), density.data, density.integral()]

    def expected(start):
        rows = np.stack([m, 2 * m, -m], -1)
        density = clouds.deposit(rows, start[0], axes, s.order)
        return [
            clouds.interpolate(u, start[0], axes, s.order), density, np.sum(rows, 0)
        ]  # fmt: skip

    total = s.count * mass
    volume = length ** len(axes)
    scales = [3.0, 4 * total / volume * np.prod(s.shape), 4 * total]
    return Problem(transfer, atoms, lambda out: out, [x], expected, scales, {})


def difference(s: Structure, n: Numbers, causes) -> str:
    """What physkit's numbers have that the reference has not."""
    p = build(s, n)
    if s.kind == "transfer":
        found, frames = (jax.jit(p.sim) if n.seed % 2 else p.sim)(p.state), {}
    else:
        others = [dataclasses.replace(n, seed=n.seed + k) for k in (1, 2)]
        states = [p.state, *(build(s, o).state for o in others if n.verb == "vmap")]
        verb = "simulate" if n.verb == "devices" and not s.devices else n.verb
        state, frames = advance(p.sim, states, STEPS, verb, causes, p.read)
        found = p.read(state)
    epsilon = np.finfo(s.dtype).eps
    shift = np.random.default_rng(5).uniform(-1, 1, p.start[0].shape) * 16 * epsilon * p.scales[0]
    with np.errstate(all="ignore"):
        if s.kind == "transfer":
            shift = shift * float(np.max(p.state.space.lengths)) / p.scales[0]
        want, near = p.advance(p.start), p.advance([p.start[0] + shift, *p.start[1:]])
        last = [f(want) for f, _ in p.frames.values()]
        last_near = [f(near) for f, _ in p.frames.values()]
    text = ""
    for name, got, expected, beside, scale in [
        *zip("xvu", found, want, near, p.scales),
        *[
            (k, frames[k][-1], a, b, scale)
            for (k, (_, scale)), a, b in zip(p.frames.items(), last, last_near)
        ],
    ]:
        if n.trouble == "nan":
            if np.isnan(expected).any() and not np.isnan(np.asarray(got)).any():
                text += f"the NaN is gone from {name}; "
            continue
        growth = np.max(np.abs(beside - expected), initial=0.0)
        size = max(scale, np.max(np.abs(expected), initial=0.0))
        if not np.isfinite(growth) or growth > 0.02 * size:
            return "chaotic, or a jump of the kernel"
        numeric = 1e-8 * size if name == "pressure" else 0.0  # the reference's own differences
        text += compare(name, got, expected, 256 * epsilon * size + 10 * growth + numeric)
    return text
