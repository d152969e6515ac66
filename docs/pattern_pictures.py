"""Pictures of single patterns for docs/images: python docs/pattern_pictures.py [NAME …]."""

import sys
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt

import physkit as pk

IMAGES = Path(__file__).parent / "images"
# How long a run goes, and which part of the state is shown.
PATTERNS = {
    "allen_cahn": (600, lambda x: x),
    "spinodal_decomposition": (2000, lambda x: x),
    "swift_hohenberg": (800, lambda x: x),
    "phase_field_crystal": (200, lambda x: x),
    "complex_ginzburg_landau": (1500, lambda x: x.map(jnp.real)),
    "fitzhugh_nagumo": (1500, lambda x: x[0]),
    "keller_segel": (1000, lambda x: x[0]),
    "porous_medium": (400, lambda x: x),
}


def draw(name: str) -> None:
    """A system as its run leaves it."""
    steps, part = PATTERNS[name]
    simulation, start = getattr(pk.systems, name)()
    every = simulation.observation_period
    end = pk.run(simulation, start, steps // every * every, progress=False)
    with pk.plot.style():
        fig, ax = plt.subplots(figsize=(3.4, 2.8), layout="constrained")
        pk.plot.field(part(end.state), ax=ax, label="")
        fig.savefig(IMAGES / f"pattern-{name.replace('_', '-')}.png", dpi=90)
        plt.close(fig)


if __name__ == "__main__":
    pk.use_compilation_cache()
    for name in sys.argv[1:] or PATTERNS:
        draw(name)
