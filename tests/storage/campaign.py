"""Run in a process of its own, which may die: kills and mutations, counted as JSON.

`python campaign.py kill FOLDER COUNT` and `python campaign.py mutate FOLDER COUNT`
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
from physkit.observe import Every, Positions, Values, Velocities
from physkit.storage import Checkpoints, FolderLock, Output, load_checkpoint, open as open_file
from physkit.storage._image import unpacked
from physkit.storage._transaction import recover

N, SHAPE, PER_COMMIT = 50, (6, 5), 3
OBSERVERS = (
    Every(2, x=Positions("gas"), v=Velocities("gas")),
    Every(2, u=Values("flow"), z=Values("wave")),
    Every(1, e=lambda now: now.t),
)


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


def output(folder):
    """The output of a run that records the frames above."""
    import jax

    shapes = {k: jax.ShapeDtypeStruct(frame(k, 0).shape, frame(k, 0).dtype) for k in "xvuze"}
    return Output(folder, OBSERVERS, state(), shapes, 0.0, 0.5)


def write(out, steps):
    """Add and commit the frames of `steps`; how long the files are."""
    steps = np.asarray(steps)
    every = {name: steps[steps % (1 if name == "e" else 2) == 0] for name in "xvuze"}
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


def writer(folder, log):
    """Go on from the last checkpoint until killed."""
    checkpoints = Checkpoints(folder / "checkpoints")
    FolderLock(folder)
    out, step = output(folder), 0
    if checkpoints.paths():
        with unpacked(checkpoints.paths()[0]) as (table, _, _path):
            step = table["step"]
            out.rewind(table["outputs"])
    else:
        out.create()
        checkpoints.save({"step": np.array(0)}, 0, outputs=out.commit())
    with open(log, "a", buffering=1) as told:
        while True:
            marks = write(out, range(step, step + PER_COMMIT))
            step += PER_COMMIT
            told.write(f"frames {step}\n")
            if random.random() < 0.5:
                checkpoints.save({"step": np.array(step)}, step, outputs=marks)
                told.write(f"checkpoint {step}\n")


def kill(folder, count):
    """Kill the writer `count` times; nothing that it had told of may be missing."""
    log, found = folder.with_suffix(".log"), collections.Counter()
    log.write_text("")
    for trial in range(count):
        said = log.stat().st_size
        child = os.fork()
        if not child:
            random.seed(trial)
            try:
                writer(folder, log)
            finally:
                os._exit(1)
        while log.stat().st_size == said:
            time.sleep(0.005)
            assert os.waitpid(child, os.WNOHANG) == (0, 0), "the writer ended by itself"
        time.sleep(random.Random(trial).uniform(0, 0.2))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        told = [line.split() for line in log.read_text().splitlines()]
        frames = int([n for kind, n in told if kind == "frames"][-1])
        saved = [int(n) for kind, n in told if kind == "checkpoint"]
        right, have = is_right(folder)  # as a reader sees it, before anything is recovered
        found["journals"] += any(folder.glob("*.journal"))
        for path in folder.glob("*.h5*"):
            recover(path)
        found["right"] += right and is_right(folder)[0]
        found["kept"] += have >= frames
        paths = Checkpoints(folder / "checkpoints").paths()
        if saved:
            with unpacked(paths[0]) as (table, _, _path):
                found["saved"] += table["step"] >= saved[-1]
        else:
            found["saved"] += 1
        log.write_text("".join(f"{a} {b}\n" for a, b in told[-2:]))
    found["trials"] = count
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
    verb, where, count = sys.argv[1:]
    where = Path(where)
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    print(json.dumps({"kill": kill, "mutate": mutate}[verb](where, int(count))))
