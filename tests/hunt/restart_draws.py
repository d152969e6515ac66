"""Draws of runs in pieces: stopped, saved, resumed, continued; against the run that was left alone."""

import dataclasses
import tempfile
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

import physkit as pk

from .bases import INTERVAL, STEPS, Base, build, draw_base
from .outcome import Outcome, judge, show_fields

WAYS = ("files", "files", "carry", "checkpoint", "simulate", "stopped", "memory")
MISTAKES = ("", "", "", "", "key", "step", "start", "changed")


@dataclasses.dataclass(frozen=True)
class Structure:
    base: Base

    def __str__(self) -> str:
        return f"restarts: {self.base}"


@dataclasses.dataclass(frozen=True)
class Numbers:
    seed: int
    way: str
    cut: int
    mistake: str

    __str__ = show_fields


def draw_structure(rng: np.random.Generator, block: int) -> Structure:
    return Structure(draw_base(rng, block))


def draw_numbers(rng: np.random.Generator, place: int) -> Numbers:
    del place
    pick = lambda *options: options[rng.integers(len(options))]
    way = pick(*WAYS)
    mistake = pick(*MISTAKES) if way in ("files", "stopped", "memory") else ""
    return Numbers(int(rng.integers(2**31)), way, INTERVAL * pick(1, 2, 3), mistake)


def examine(s: Structure, n: Numbers) -> Outcome:
    named = {"key": "key", "step": "dt|step", "start": "start|state|position|data|velocity"}
    return judge(lambda: difference(s, n), [named[n.mistake]] if n.mistake in named else [])


def difference(s: Structure, n: Numbers) -> str:
    model, key = build(s.base, n.seed)
    with tempfile.TemporaryDirectory() as folder:
        whole, pieces, bitwise = _run(model, key, n, Path(folder))
    if n.mistake in ("key", "step", "start"):
        if n.mistake == "key" and key is None:
            return ""  # of no effect
        return f"went on with another {n.mistake}"
    text = ""
    for (path, want), got in zip(
        jax.tree_util.tree_flatten_with_path(eqx.filter(whole, eqx.is_array_like))[0],
        jax.tree.leaves(eqx.filter(pieces, eqx.is_array_like)),
        strict=True,
    ):
        if jax.numpy.issubdtype(getattr(want, "dtype", float), jax.dtypes.prng_key):
            want, got = jax.random.key_data(want), jax.random.key_data(got)
        want, got = np.asarray(want), np.asarray(got)
        if bitwise:
            same = want.dtype == got.dtype and np.array_equal(
                want, got, equal_nan=want.dtype.kind in "fc"
            )
        else:
            epsilon = np.finfo(s.base.structure.dtype).eps
            size = np.max(np.abs(want), initial=0.0)
            same = want.shape == got.shape and np.allclose(want, got, 0, 1e4 * epsilon * size, True)
        if not same:
            text += (
                f"{jax.tree_util.keystr(path)} is {got.ravel()[:3]}, expected {want.ravel()[:3]}; "
            )
    return text


def _quiet(*args, **kwargs):
    return pk.run(*args, progress=False, **kwargs)


def _results(done) -> dict:
    return {
        "state": done.state,
        "frames": done.frames,
        "times": done.times,
        "summary": done.summary,
    }


def _after(frames, count: int):
    """The last `count` frames."""
    return jax.tree.map(lambda x: x[len(x) - count :], frames)


def _run(model, key, n: Numbers, folder: Path):
    """Results of the whole run and of its pieces, and whether all bits must be equal."""
    sim, state = model
    if n.way == "simulate":
        simulate = eqx.filter_jit(pk.simulate)
        whole = simulate(sim, state, STEPS, key=key)
        first = simulate(sim, state, n.cut, key=key)
        second = simulate(sim, first.carry, STEPS - n.cut)
        join = lambda a, b: jax.tree.map(lambda x, y: np.concatenate([x, y]), a, b)
        got = {
            "state": second.state, "frames": join(first.frames, second.frames),
            "times": join(first.times, second.times), "summary": second.summary,
        }  # fmt: skip
        return _results(whole), got, False  # programs of other lengths round differently
    whole = _results(_quiet(sim, state, STEPS, key=key))
    if n.way in ("carry", "checkpoint"):
        carry = _quiet(sim, state, n.cut, key=key).carry
        if n.way == "checkpoint":
            pk.save_checkpoint(folder / "saved.h5", carry)
            carry = pk.load_checkpoint(folder / "saved.h5", carry).tree
        last = _results(_quiet(sim, carry, STEPS - n.cut))
        count = (STEPS - n.cut) // INTERVAL
        whole["frames"], whole["times"] = (_after(whole[k], count) for k in ("frames", "times"))
        return whole, last, True
    where = {"checkpoint": folder / "c"} if n.way == "memory" else {"to": folder / "r"}
    first = {"wall_time": 0.0} if n.way == "stopped" else {}
    _quiet(sim, state, STEPS if first else n.cut, key=key, **where, **first)
    resume = True
    if n.mistake == "key":
        key = jax.random.key(987)
        if not isinstance(sim.integrator, pk.BAOAB):
            return whole, whole, True  # no noise: a key would be refused anyway
    elif n.mistake == "step":
        sim = eqx.tree_at(lambda s: s.dt, sim, sim.dt * 1.5)
    elif n.mistake == "start":
        state = jax.tree.map(lambda x: x * 1.0625 if eqx.is_inexact_array(x) else x, state)
    elif n.mistake == "changed":
        resume = "changed"
    done = _quiet(sim, state, STEPS, key=key, **where, resume=resume)
    got = _results(done)
    if n.way == "memory":
        count = done.steps // INTERVAL
        whole["frames"], whole["times"] = (_after(whole[k], count) for k in ("frames", "times"))
        if done.resumed_from == 0:
            whole["frames"] = whole["times"] = got["frames"] = got["times"] = None
        return whole, got, True
    stored = {k: np.asarray(done.recording[k]) for k in whole["frames"]}
    for name, frames in whole["frames"].items():
        # Files hold single precision unless told otherwise.
        if not np.array_equal(frames.astype(np.float32), stored[name].astype(np.float32), True):
            raise AssertionError(f"the file's {name} is {stored[name]}, expected {frames}")
    for results in (whole, got):
        results["frames"] = results["times"] = None
    return whole, got, True
