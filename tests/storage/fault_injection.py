"""Kill writers and damage files, in a process of its own, and print counts of the outcomes as JSON.

`python fault_injection.py kill FOLDER COUNT WRITER`, where the writer is particles, fields, coupled or
checkpoints; and `python fault_injection.py mutate FOLDER COUNT`, or takeover in place of mutate
"""

import collections
import contextlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import h5py
import numpy as np

from physkit.core import FileError
from physkit.geometry import Box, Grid
from physkit.observe import Every, FieldValues, Positions, Velocities
from physkit.storage import (
    Checkpoints,
    FolderLock,
    Output,
    identify_process,
    load_checkpoint,
    load_component,
    open as open_file,
)
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
    """What is recorded as `name` at `step`: the numbers depend on name and step."""
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
    """Whether every committed frame is right; the number of frames of `e`."""
    found = open_file(folder)
    for name, series in found.items():
        steps = series.step
        expected = np.stack([frame(name, k) for k in steps]) if len(steps) else series[:]
        every = 1 if name == "e" else 2
        if not np.array_equal(series[:], expected) or not np.array_equal(series.time, 0.5 * steps):
            return False, 0
        if not np.array_equal(steps, every * np.arange(len(steps))):
            return False, 0
    return True, len(found["e"])


def write_until_killed(folder, log, kind):
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
    with open(log, "a", buffering=1) as log_file:
        while True:
            marks = write(out, range(step, step + PER_COMMIT), kind)
            step += PER_COMMIT
            log_file.write(f"frames {step}\n")
            if random.random() < 0.5:
                checkpoints.save({"step": np.array(step)}, step, outputs=marks)
                log_file.write(f"checkpoint {step}\n")


def tree(step):
    """What is saved at `step` where nothing but checkpoints is written: 0.4 MB."""
    return {"x": np.arange(50_000.0) + step, "step": np.array(step)}


def save_until_killed(folder, log):
    """Save one checkpoint after the other until killed."""
    checkpoints = Checkpoints(folder / "checkpoints")
    found = checkpoints.restore(tree(0))
    step = 0 if found is None else found.step
    with open(log, "a", buffering=1) as log_file:
        while True:
            step += 1
            checkpoints.save(tree(step), step)
            log_file.write(f"checkpoint {step}\n")


def kill_after_first_line(folder, log, trial, work):
    """Let `work` run in a process until it has logged something, and a random moment longer."""
    log_size = log.stat().st_size
    child = os.fork()
    if not child:
        random.seed(trial)
        try:
            work()
        finally:
            os._exit(1)
    while log.stat().st_size == log_size:
        time.sleep(0.005)
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the writer ended by itself"
    time.sleep(random.Random(trial).uniform(0, 0.2))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def read_last_logged(log):
    """The last frames and checkpoint in the log, which is cut to those lines."""
    lines = [line.split() for line in log.read_text().splitlines()]
    last = {kind: int(number) for kind, number in lines}
    log.write_text("".join(f"{kind} {number}\n" for kind, number in last.items()))
    return last


def kill(folder, count, kind):
    """Kill the writer `count` times; nothing that it had logged may be missing."""
    log, found = folder.with_suffix(".log"), collections.Counter(trials=count)
    log.write_text("")
    if kind == "checkpoints":
        return kill_savers(folder, log, count, found)
    for trial in range(count):
        kill_after_first_line(folder, log, trial, lambda: write_until_killed(folder, log, kind))
        logged = read_last_logged(log)
        right, num_frames = is_right(folder)  # as a reader sees it, before anything is recovered
        found["journals"] += any(folder.glob("*.journal"))
        for path in folder.glob("*.h5*"):
            recover(path)
        found["right"] += right and is_right(folder)[0]
        found["kept"] += num_frames >= logged["frames"]
        with open_checkpoint(Checkpoints(folder / "checkpoints").paths()[0]) as (table, _, _path):
            found["saved"] += table["step"] >= logged.get("checkpoint", 0)
    return found


def kill_savers(folder, log, count, found):
    """The same where nothing but checkpoints is written: the newest is complete and right."""
    checkpoints = Checkpoints(folder / "checkpoints")
    for trial in range(count):
        kill_after_first_line(folder, log, trial, lambda: save_until_killed(folder, log))
        logged = read_last_logged(log)
        found["journals"] += any(checkpoints.folder.glob(".writing-*"))
        newest = load_checkpoint(checkpoints.paths()[0], tree(0))
        expected = tree(newest.step)
        found["right"] += all(np.array_equal(newest.tree[k], expected[k]) for k in expected)
        found["kept"] += len(checkpoints.paths()) >= min(newest.step, checkpoints.keep)
        found["saved"] += newest.step >= logged["checkpoint"]
        checkpoints.remove_leftovers()
    return found


def takeover(folder, count):
    """Let three processes take over `count` stale locks at once; how often how many of them got one."""
    gone = json.dumps({**identify_process(), "process": 2**22 - 1, "began": "7"})
    start = multiprocessing.get_context("fork").Barrier(3)
    for k in range(count):
        (folder / str(k)).mkdir()
        lock = folder / str(k) / "lock"
        lock.write_text(gone if k % 3 else "")
        os.utime(lock, (time.time() - 120,) * 2)  # an empty lock is stale when it is old
    children = []
    for _ in range(3):
        children.append(os.fork())
        if not children[-1]:
            try:
                for k in range(count):
                    start.wait()
                    with contextlib.suppress(FileError):
                        FolderLock(folder / str(k))
                        (folder / str(k) / f"won-{os.getpid()}").touch()
                start.wait()  # the last lock's holder stays until all have tried: it would be stale again
            finally:
                os._exit(0)
    for child in children:
        os.waitpid(child, 0)
    found = collections.Counter(trials=count)
    for k in range(count):
        found[f"winners {len(list((folder / str(k)).glob('won-*')))}"] += 1
    return found


STEPS = 240  # recorded before files are damaged: datasets of several chunks


def mutate(folder, count):
    """Damage each kind of file `count` times; reading it gives an error of ours or the right data."""
    tree = {"x": np.arange(3000.0), "n": np.arange(5), "flag": True}
    out = output(folder)
    out.create()
    for k in range(0, STEPS, 30):
        marks = write(out, range(k, k + 30))
    Checkpoints(folder / "checkpoints").save(tree, STEPS, outputs=marks)
    files = sorted(folder.glob("*.h5*")) + sorted(folder.glob("*.vtkhdf"))
    files += sorted((folder / "checkpoints").glob("*.h5"))
    found = collections.Counter()
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    for original in files:
        kind = original.name.split("-")[0].split(".")[0]
        good = original.read_bytes()
        places = stored_places(original)
        damaged_path = folder / "mutated" / original.name
        damaged_path.parent.mkdir(exist_ok=True)
        for trial in range(count):
            rng = random.Random(trial)
            damaged = good
            while damaged == good:  # zeros over zeros
                damaged = damage(good, rng, places)
            damaged_path.write_bytes(damaged)
            signal.alarm(20)
            try:
                if kind == "checkpoint":
                    loaded = load_checkpoint(damaged_path, tree).tree
                    right = all(np.array_equal(loaded[k], tree[k]) for k in tree)
                else:
                    right = same_as_written(damaged_path, rng)
                found[f"{kind} {'harmless' if right else 'WRONG DATA'}"] += 1
            except FileError:
                found[f"{kind} refused"] += 1
            except BaseException as error:
                found[f"{kind} {type(error).__name__} at trial {trial}"] += 1
            signal.alarm(0)
    return found


def stored_places(path):
    """Where the arrays of a file lie, as (offset, size): each chunk with its checksum."""
    places = []

    def add(_, found):
        if not isinstance(found, h5py.Dataset):
            return
        if found.chunks is None:
            places.append((found.id.get_offset(), found.id.get_storage_size()))
        else:
            infos = (found.id.get_chunk_info(k) for k in range(found.id.get_num_chunks()))
            places.extend((info.byte_offset, info.size) for info in infos)

    with h5py.File(path) as file:
        file.visititems(add)
        base = file.userblock_size
    # Of an HDF5 image behind a header, offsets are counted from its beginning.
    return [(base + offset, size) for offset, size in places if offset is not None and size]


def damage(good, rng, places):
    """A file cut short, with flipped bits, or with parts overwritten, lost or exchanged."""
    data = bytearray(good)
    kind = rng.randrange(7)
    # Half of the hits go to the beginning, where the structure is.
    end = len(data) if rng.random() < 0.5 else min(4096, len(data))
    if kind == 0:
        return bytes(data[: rng.randrange(len(data))])
    if kind == 1:
        data[rng.randrange(end)] ^= 1 << rng.randrange(8)
    elif kind == 2:
        for _ in range(rng.randrange(2, 50)):
            data[rng.randrange(end)] ^= rng.randrange(1, 256)
    elif kind == 3:
        at = rng.randrange(end)
        length = rng.randrange(1, 600)
        data[at : at + length] = rng.randbytes(len(data[at : at + length]))
    elif kind == 4:  # pages that a loss of power has zeroed
        page = rng.choice([512, 4096])
        at = page * rng.randrange(-(-len(data) // page))
        stop = min(len(data), at + page * rng.randrange(1, 4))
        data[at:stop] = bytes(stop - at)
    elif kind == 5:  # an extent that was never written: a chunk together with its checksum
        offset, size = rng.choice(places)
        data[offset : offset + size] = bytes(size)
    else:  # blocks that are exchanged
        a, b = rng.sample(places, 2) if rng.random() < 0.5 else [(0, 512), (512, 512)]
        size = min(a[1], b[1])
        first = a[0] if a[0] else 512 * rng.randrange(len(data) // 512)
        second = b[0] if a[0] else 512 * rng.randrange(len(data) // 512)
        if abs(first - second) >= size:
            one, other = data[first : first + size], data[second : second + size]
            data[first : first + size], data[second : second + size] = other, one
    return bytes(data)


def same_as_written(path, rng):
    """Whether all series of a file are as they were written: whole, by frame, and what lies beside them."""
    found = open_file(path)
    names = {"series": "e", "trajectory-gas": "xv", "fields-flow": "u", "fields-wave": "z"}
    wanted = names[path.stem]
    for name in wanted:
        steps = np.arange(0, STEPS, 1 if name == "e" else 2)
        series = found[name]
        expected = np.stack([frame(name, k) for k in steps])
        k = rng.randrange(len(steps))
        # Frame by frame first: an error of the whole array would hide what a frame gives.
        same = np.array_equal(series[k], expected[k]) and np.array_equal(series[::7], expected[::7])
        same = (
            same and np.array_equal(series.step, steps) and np.array_equal(series.time, 0.5 * steps)
        )
        if not same or not np.array_equal(series[:], expected):
            return False
    component = load_component(found[wanted[0]], 3) if wanted != "e" else None
    if wanted == "xv":
        beside = np.array_equal(component.mass, np.ones(N)) and component.id.tolist() == list(
            range(N)
        )
        beside = beside and np.array_equal(component.space.lengths, [3.0] * 3)
    else:
        beside = component is None or np.allclose(component.grid.space.lengths, [1.0, 2.0])
    return beside and set(found) == set(wanted)


if __name__ == "__main__":
    verb, where, count, *more = sys.argv[1:]
    where = Path(where)
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    print(
        json.dumps(
            {"kill": kill, "mutate": mutate, "takeover": takeover}[verb](where, int(count), *more)
        )
    )
