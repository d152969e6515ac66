"""Six equations, six patterns: phases, convection, a crystal, oscillations, a nerve, cells that gather."""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
cells = 64 if quick else 192
eq, key = pk.equations, jax.random.key(0)


def noise(size, mean=0.0, strength=0.05, parts=()):
    """A square of side `size` with small noise."""
    values = mean + strength * jax.random.normal(key, (*parts, cells, cells))
    return pk.Field(values, pk.Grid([size, size], (cells, cells)))


def advance(flow, start, dt, time):
    steps = round((0.1 if quick else 1.0) * time / dt)
    return pk.run(pk.Simulation(flow, dt), start, steps, progress=False).state


# Phases that part: a mixture with more of one than of the other.
mixture = advance(pk.ETDRK2(eq.CahnHilliard()), noise(192.0, mean=-0.3), 0.5, 1500)

# Convection: up and down differ, so that hexagons are better than rolls.
convection = advance(pk.ETDRK2(eq.SwiftHohenberg(0.1, asymmetry=1.0)), noise(120.0), 0.4, 300)

# A liquid freezes from three seeds that are turned against one another.
liquid = noise(140.0, mean=-0.285, strength=0.0)
x, y = liquid.coordinates
density = liquid.data
for (cx, cy), angle in zip([(35, 40), (105, 50), (60, 105)], (0.0, 0.35, 0.7), strict=True):
    u = (x - cx) * jnp.cos(angle) + (y - cy) * jnp.sin(angle)
    v = (y - cy) * jnp.cos(angle) - (x - cx) * jnp.sin(angle)
    atoms = jnp.cos(0.866 * u) * jnp.cos(0.5 * v) - 0.5 * jnp.cos(v)
    density = density + jnp.where(u**2 + v**2 < 150, -0.45 * atoms, 0.0)
crystal = advance(pk.ETDRK2(eq.PhaseFieldCrystal(0.25)), liquid.replace(data=density), 0.5, 900)

# Oscillations: spirals of the phase.
start = noise(160.0, parts=(2,)).data
start = pk.Field(jax.lax.complex(start[0], start[1]), noise(160.0).grid)
law = eq.ComplexGinzburgLandau(dispersion=-0.5, detuning=0.6)
oscillation = advance(pk.ETDRK4(law), start, 0.1, 250)

# A nerve between walls: a wave whose way is barred on one half curls up.
sheet = pk.Grid(pk.Box([120.0, 120.0], periodic=(False, False)), (cells, cells))
x, y = sheet.coordinates()
v = jnp.where(x < 60, 1.5, -1.2)
w = jnp.where(y < 60, 0.6, -0.6) + 0 * x
medium = pk.Field(jnp.stack([v + 0 * y, w]), sheet, boundary=pk.boundaries.Neumann())
spread = eq.Diffusion([1.0, 0.0], scheme=pk.schemes.Central())
nerve = advance(pk.RK4(eq.FitzHughNagumo(slowness=0.05), spread), medium, 0.08, 160)

# Cells that climb the slope of what they emit.
swarm = noise(36.0, mean=1.0, strength=0.1, parts=(2,))
chase = pk.ETDRK2(eq.KellerSegel(2.0, decay=0.4), eq.Diffusion([0.9, 1.0]))
gathered = advance(chase, swarm, 0.01, 13.0)

with pk.plot.style():
    fig, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
    panels = [
        ("Cahn–Hilliard: a mixture parts", mixture, {"cmap": "RdBu_r", "limits": (-1, 1)}),
        ("Swift–Hohenberg: convection", convection, {"cmap": "magma"}),
        ("phase-field crystal: three grains", crystal, {"cmap": "bone"}),
        ("Ginzburg–Landau: spirals, Re $A$", oscillation.map(jnp.real), {"cmap": "twilight"}),
        ("FitzHugh–Nagumo: a broken wave, $v$", nerve[0], {"cmap": "inferno"}),
        ("Keller–Segel: density of cells", gathered[0], {"cmap": "viridis"}),
    ]
    for ax, (title, field, how) in zip(axes.flat, panels, strict=True):
        pk.plot.field(field, ax=ax, label="", **how)
        ax.set_title(title)
        ax.label_outer(remove_inner_ticks=False)
        ax.tick_params(labelbottom=True, labelleft=True)
    fig.savefig("patterns.png", dpi=110)
