"""Recordings for tests: outputs of given frames, and processes that kill writers and damage files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from physkit.observe import Every, Positions
from physkit.particles import Particles
from physkit.storage import Output

FAULT_INJECTION = Path(__file__).with_name("fault_injection.py")
ROOT = Path(__file__).parents[2]


def output(folder, observers, state, sharding=None, **frames):
    """An output for frames of which the first are given, with those in it."""
    folder.mkdir(exist_ok=True)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), frames)
    out = Output(folder, observers, state, shapes, t0=1.0, dt=0.25, sharding=sharding)
    out.create()
    add(out, observers, frames)
    return out


def add(out, observers, frames, first=0):
    intervals = {name: o.interval for o in observers for name in o.outputs}
    count = lambda x: len(jax.tree.leaves(x)[0])
    out.add(frames, {k: first + intervals[k] * np.arange(count(x)) for k, x in frames.items()})
    return out.commit()


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


ONE = (Every(2, x=Positions(), e=lambda now: now.t),)


def simple(folder, count=3):
    state = Particles(jnp.zeros((20, 3)))
    return output(folder, ONE, state, x=numbers(count, 20, 3), e=numbers(count))


def inject_faults(verb, folder, count, *more):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, str(FAULT_INJECTION), verb, str(folder), str(count), *more],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
