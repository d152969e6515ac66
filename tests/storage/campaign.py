"""Run in a process of its own, which may die: kills and mutations, counted as JSON.

`python campaign.py kill FOLDER COUNT WRITER`, the writer being particles, fields, coupled or checkpoints;
and `python campaign.py mutate FOLDER COUNT`
"""

import collections
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np

from physkit.core import FileError
from physkit.geometry import Box, Grid
from physkit.observe import Every, FieldValues, Positions, Velocities
from physkit.storage import Checkpoints, FolderLock, Output, load_checkpoint, open as open_file
from physkit.storage._hdf5_transaction import recover
from physkit.storage.checkpoint._checkpoint_bytes import open_checkpoint

N, SHAPE, PER_COMMIT = 50, (6, 5), 3
OBSERVERS = {
    "particles": (Every(2, x=Positions("gas"), v=Velocities("gas")), Every(1, e=lambda now: now.t)),
    "fields": (
        Every(2, u=FieldValues("flow"), z=FieldValues("wave")),
        Every(1, e=lambda now: now.t),
    ),
    "coupled": (
        Every(2, x=Positions("gas"), v=Velocities("gas")),
        Every(2, u=FieldValues("flow"), z=FieldValues("wave")),
        Every(1, e=lambda now: now.t),
    ),
}
NAMES = {"particles": "xve", "fields": "uze", "coupled": "xvuze"}


def frame(name, step):
    """What is recorded as `name` at `step`: every number says where it belongs."""
    shapes = {"x": (N, 3), "v": (N, 3), "u": SHAPE, "z": SHAPE, "e": ()}
    size = int(np.prod(shapes[name]))
    values = (step + np.arange(size) / 1024 + " xvuze".index(name) * 1000).reshape(shapes[name])
    return values.astype(np.complex64) * (1 + 1j) if name == "z" else values.astype(np.float32)


def state():
    """Particles and two fields."""
    import jax.numpy as jnp

    from physkit.fields import Field
    from physkit.particles import Particles

    grid = Grid(Box([1.0, 2.0]), SHAPE)
    return {
        "gas": Particles(jnp.zeros((N, 3)), space=Box.cube(3.0)),
        "flow": Field(0.0, grid),
        "wave": Field(jnp.zeros(SHAPE, complex), grid),
    }


def output(folder, kind="coupled"):
    """The output of a run that records the frames above."""
    import jax

    shapes = {k: jax.ShapeDtypeStruct(frame(k, 0).shape, frame(k, 0).dtype) for k in NAMES[kind]}
    return Output(folder, OBSERVERS[kind], state(), shapes, 0.0, 0.5)


def write(out, steps, kind="coupled"):
    """Add and commit the frames of `steps`; how long the files are."""
    steps = np.asarray(steps)
    every = {name: steps[steps % (1 if name == "e" else 2) == 0] for name in NAMES[kind]}
    every = {name: s for name, s in every.items() if len(s)}
    out.add({name: np.stack([frame(name, k) for k in s]) for name, s in every.items()}, every)
    return out.commit()


def is_right(folder):
    """Whether every committed frame says what it should; how many there are of `e`."""
    found = open_file(folder)
    for name, series in found.items():
        steps = series.step
        want = np.stack([frame(name, k) for k in steps]) if len(steps) else series[:]
        every = 1 if name == "e" else 2
        if not np.array_equal(series[:], want) or not np.array_equal(series.time, 0.5 * steps):
            return False, 0
        if not np.array_equal(steps, every * np.arange(len(steps))):
            return False, 0
    return True, len(found["e"])


def writer(folder, log, kind):
    """Go on from the last checkpoint until killed."""
    checkpoints = Checkpoints(folder / "checkpoints")
    FolderLock(folder)
    checkpoints.remove_leftovers()
    out, step = output(folder, kind), 0
    if checkpoints.paths():
        with open_checkpoint(checkpoints.paths()[0]) as (table, _, _path):
            step = table["step"]
            out.rewind(table["outputs"])
    else:
        out.create()
        checkpoints.save({"step": np.array(0)}, 0, outputs=out.commit())
    with open(log, "a", buffering=1) as told:
        while True:
            marks = write(out, range(step, step + PER_COMMIT), kind)
            step += PER_COMMIT
            told.write(f"frames {step}\n")
            if random.random() < 0.5:
                checkpoints.save({"step": np.array(step)}, step, outputs=marks)
                told.write(f"checkpoint {step}\n")


def tree(step):
    """What is saved at `step` where nothing but checkpoints is written: 0.4 MB."""
    return {"x": np.arange(50_000.0) + step, "step": np.array(step)}


def saver(folder, log):
    """Save one checkpoint after the other until killed."""
    checkpoints = Checkpoints(folder / "checkpoints")
    found = checkpoints.restore(tree(0))
    step = 0 if found is None else found.step
    with open(log, "a", buffering=1) as told:
        while True:
            step += 1
            checkpoints.save(tree(step), step)
            told.write(f"checkpoint {step}\n")


def killed(folder, log, trial, work):
    """Let `work` run in a process until it has said something, and a random moment longer."""
    said = log.stat().st_size
    child = os.fork()
    if not child:
        random.seed(trial)
        try:
            work()
        finally:
            os._exit(1)
    while log.stat().st_size == said:
        time.sleep(0.005)
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the writer ended by itself"
    time.sleep(random.Random(trial).uniform(0, 0.2))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def last_told(log):
    """The last frames and checkpoint that were told of; the log is cut to those lines."""
    lines = [line.split() for line in log.read_text().splitlines()]
    last = {kind: int(number) for kind, number in lines}
    log.write_text("".join(f"{kind} {number}\n" for kind, number in last.items()))
    return last


def kill(folder, count, kind):
    """Kill the writer `count` times; nothing that it had told of may be missing."""
    log, found = folder.with_suffix(".log"), collections.Counter(trials=count)
    log.write_text("")
    if kind == "checkpoints":
        return kill_savers(folder, log, count, found)
    for trial in range(count):
        killed(folder, log, trial, lambda: writer(folder, log, kind))
        told = last_told(log)
        right, have = is_right(folder)  # as a reader sees it, before anything is recovered
        found["journals"] += any(folder.glob("*.journal"))
        for path in folder.glob("*.h5*"):
            recover(path)
        found["right"] += right and is_right(folder)[0]
        found["kept"] += have >= told["frames"]
        with open_checkpoint(Checkpoints(folder / "checkpoints").paths()[0]) as (table, _, _path):
            found["saved"] += table["step"] >= told.get("checkpoint", 0)
    return found


def kill_savers(folder, log, count, found):
    """The same where nothing but checkpoints is written: the newest is whole and right."""
    checkpoints = Checkpoints(folder / "checkpoints")
    for trial in range(count):
        killed(folder, log, trial, lambda: saver(folder, log))
        told = last_told(log)
        found["journals"] += any(checkpoints.folder.glob(".writing-*"))
        newest = load_checkpoint(checkpoints.paths()[0], tree(0))
        want = tree(newest.step)
        found["right"] += all(np.array_equal(newest.tree[k], want[k]) for k in want)
        found["kept"] += len(checkpoints.paths()) >= min(newest.step, checkpoints.keep)
        found["saved"] += newest.step >= told["checkpoint"]
        checkpoints.remove_leftovers()
    return found


def mutate(folder, count):
    """Damage each kind of file `count` times; reading it gives an error of ours or the right data."""
    tree = {"x": np.arange(300.0), "n": np.arange(5), "flag": True}
    out = output(folder)
    out.create()
    for k in range(0, 30, PER_COMMIT):
        marks = write(out, range(k, k + PER_COMMIT))
    Checkpoints(folder / "checkpoints").save(tree, 30, outputs=marks)
    files = sorted(folder.glob("*.h5*")) + sorted(folder.glob("*.vtkhdf"))
    files += sorted((folder / "checkpoints").glob("*.h5"))
    found = collections.Counter()
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    for original in files:
        kind = original.name.split("-")[0].split(".")[0]
        good = original.read_bytes()
        place = folder / "mutated" / original.name
        place.parent.mkdir(exist_ok=True)
        for trial in range(count):
            place.write_bytes(damage(good, random.Random(trial)))
            signal.alarm(20)
            try:
                if kind == "checkpoint":
                    back = load_checkpoint(place, tree).tree
                    right = all(np.array_equal(back[k], tree[k]) for k in tree)
                else:
                    right = same_as_written(place)
                found[f"{kind} {'harmless' if right else 'WRONG DATA'}"] += 1
            except FileError:
                found[f"{kind} refused"] += 1
            except BaseException as error:
                found[f"{kind} {type(error).__name__} at trial {trial}"] += 1
            signal.alarm(0)
    return found


def damage(good, dice):
    """A file cut short, with bits flipped, or with a stretch overwritten."""
    data = bytearray(good)
    way = dice.randrange(4)
    if way == 0:
        return bytes(data[: dice.randrange(len(data))])
    # Half of the hits go to the beginning, where the structure is.
    end = len(data) if dice.random() < 0.5 else min(4096, len(data))
    if way == 1:
        data[dice.randrange(end)] ^= 1 << dice.randrange(8)
    elif way == 2:
        for _ in range(dice.randrange(2, 50)):
            data[dice.randrange(end)] ^= dice.randrange(1, 256)
    else:
        at = dice.randrange(end)
        length = dice.randrange(1, 600)
        data[at : at + length] = dice.randbytes(len(data[at : at + length]))
    return bytes(data)


def same_as_written(path):
    """Whether all series of a file are as they were written."""
    found = open_file(path)
    names = {"series": "e", "trajectory-gas": "xv", "fields-flow": "u", "fields-wave": "z"}
    wanted = names[path.stem]
    for name in wanted:
        steps = np.arange(0, 30, 1 if name == "e" else 2)
        series = found[name]
        same = np.array_equal(series.step, steps) and np.array_equal(series.time, 0.5 * steps)
        if not same or not np.array_equal(series[:], np.stack([frame(name, k) for k in steps])):
            return False
    return set(found) == set(wanted)


if __name__ == "__main__":
    verb, where, count, *more = sys.argv[1:]
    where = Path(where)
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    print(json.dumps({"kill": kill, "mutate": mutate}[verb](where, int(count), *more)))
