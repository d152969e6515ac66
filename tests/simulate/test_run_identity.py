"""A run goes on only from its own checkpoints: another start, key, parameter or code is refused by name."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import MismatchError, static
from physkit.integrators import VelocityVerlet
from physkit.observe import Every
from physkit.particles.forces import AbstractForce
from physkit.simulate import Simulation, run
from physkit.storage import Checkpoints, load_checkpoint, program_digest

from .problems import RandomWalk, particles, x_of

ROOT = Path(__file__).parents[2]
EXPONENT = 1


def helper(x):
    return x**EXPONENT


class Spring(AbstractForce):
    """A spring to the origin, whose law is in a helper that its method calls."""

    conserves_momentum = False
    component: str | None = static(default=None)

    def __call__(self, clock, state, cache):
        return -helper(self.particles(state).position), cache

    def init(self, state):
        return None

    def force(self, clock, state):
        return -helper(self.particles(state).position)


def walk(step=0.1):
    return Simulation(RandomWalk(), step, observers=Every(1, x=x_of))


def quiet(*args, **kwargs):
    return run(*args, progress=False, **kwargs)


@pytest.fixture
def walked(tmp_path):
    quiet(walk(), particles(), 2, key=jax.random.key(1), to=tmp_path)
    return tmp_path


def resume(folder, sim=None, state=None, seed=1, resume=True, steps=2):
    state = particles() if state is None else state
    return quiet(sim or walk(), state, steps, key=jax.random.key(seed), to=folder, resume=resume)


def test_another_key_or_start_is_refused_and_named(walked):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resume(walked).resumed_from == 2
    with pytest.raises(
        MismatchError, match=r"the random key: .*\[0, 1\] in the file.*\[0, 2\] here"
    ):
        resume(walked, seed=2)
    other = particles().replace(position=particles().position + 0.01)
    with pytest.raises(
        MismatchError, match=r"(?s)the start: \.position float64.*another folder"
    ) as caught:
        resume(walked, state=other)
    assert "velocity" not in str(caught.value)
    assert "random key" not in str(caught.value)
    with pytest.raises(MismatchError, match=r"the simulation: \.dt float64\[\] 0.1 in the file"):
        resume(walked, sim=walk(0.2))


def test_what_differs_can_be_accepted(walked):
    with pytest.warns(UserWarning, match=r"the random key: .*goes on with what it is now"):
        assert resume(walked, seed=2, resume="changed", steps=3).steps == 1
    # From here on it is the run with the new key.
    assert resume(walked, seed=2, steps=3).steps == 0
    with pytest.raises(MismatchError, match="the random key"):
        resume(walked, seed=1, steps=3)


def test_rounding_of_the_start_warns(walked):
    start = particles()
    nearly = start.replace(position=jnp.nextafter(start.position, jnp.inf))
    with pytest.warns(UserWarning, match=r"the start\.position differ .* no more than rounding"):
        resume(walked, state=nearly)


@pytest.mark.filterwarnings("ignore:.*from outside, which has changed")
def test_a_changed_helper_of_a_method_is_refused(tmp_path, monkeypatch):
    sim, state = Simulation(VelocityVerlet(Spring()), 0.01), particles()
    quiet(sim, state, 2, to=tmp_path)
    assert quiet(sim, state, 2, to=tmp_path, resume=True).steps == 0
    monkeypatch.setitem(globals(), "EXPONENT", 2)
    jax.clear_caches()  # as in a new process, which knows nothing of the old code
    with pytest.raises(MismatchError, match="the code: the program traced from the simulation is"):
        quiet(sim, state, 4, to=tmp_path, resume=True)


def test_files_without_an_identity_go_on_with_a_warning(walked, monkeypatch):
    from physkit.storage.checkpoint import _checkpoint_folder

    path = Checkpoints(walked / "checkpoints").paths()[0]
    found = load_checkpoint

    def of_0_2(*args, **kwargs):
        import dataclasses

        return dataclasses.replace(found(*args, **kwargs), identity=None, version="0.2.0")

    monkeypatch.setattr(_checkpoint_folder, "load_checkpoint", of_0_2)
    with pytest.warns(UserWarning, match=r"0\.2\.0.*the key and the code.*cannot be checked"):
        assert resume(walked, seed=5).resumed_from == 2
    assert path.is_file()


def test_other_versions_of_jax_are_not_compared(walked, monkeypatch):
    from physkit.storage.checkpoint import _identity

    versions = _identity.code_versions()
    monkeypatch.setattr(_identity, "code_versions", lambda: versions | {"jax": "99.0"})
    with pytest.warns(UserWarning, match=r"cannot be compared.*the code \(jax .* → 99\.0"):
        resume(walked)


def digest_of(function, *arguments):
    return program_digest(jax.make_jaxpr(function)(*arguments))


def test_digests_of_programs_see_numbers_and_no_names():
    x, table = jnp.arange(3.0), np.arange(40.0)

    def one(x):
        return jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) * 2.0, x) + table[:3]

    def renamed(z):
        def body(index, value):
            return jnp.sin(value) * 2.0

        return jax.lax.fori_loop(0, 3, body, z) + np.array(table)[:3]

    assert digest_of(one, x) == digest_of(renamed, x)
    changed = np.array(table)
    changed[1] += 1e-12
    others = [
        lambda x: jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) * 2.5, x) + table[:3],
        lambda x: jax.lax.fori_loop(0, 4, lambda i, y: jnp.sin(y) * 2.0, x) + table[:3],
        lambda x: jax.lax.fori_loop(0, 3, lambda i, y: jnp.cos(y) * 2.0, x) + table[:3],
        lambda x: jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) * 2.0, x) + changed[:3],
    ]
    assert len({digest_of(f, x) for f in (one, *others)}) == 5
    # The order of operands, which text of operations alone would not show.
    y = x + 1
    assert digest_of(lambda a, b: a - b, x, y) != digest_of(lambda a, b: b - a, x, y)


CHILD = """
import json, sys, weakref
sys.path.insert(0, {root!r})
{device_count}
import jax, jax.numpy as jnp, physkit as pk
jax.config.update("jax_enable_x64", True)
from physkit.simulate import init
from physkit.simulate.driver._run_identity import run_identity
from physkit.simulate.driver._single_device import SingleDevice
from physkit.simulate.distributed._domain import DistributedDomain
class Owner: pass
owner = Owner()
def law(names, anchor=weakref.ref(owner)):
    scales = {{"one": 1.0, "two": 2.0, "three": 3.0}}
    return lambda clock, particles: -particles.position * sum(scales[n] for n in sorted(names))
state = pk.Particles(jnp.linspace(0.5, 8.5, 18).reshape(9, 2), space=pk.Box((9.0, 9.0)))
force = pk.Pairwise(pk.LennardJones(), cutoff=2.0, use_neighbor_list=False)
quantity = lambda now: now.state.position[:, 0]
sim = pk.Simulation(pk.BAOAB(force, temperature=1.0, friction=1.0), 1e-3, observers=pk.Every(2, x=quantity))
carry = init(sim, state, key=jax.random.key(3))
found = run_identity(SingleDevice(sim), state, carry).digests
whole = DistributedDomain(sim, (2,), "vmap")
over = run_identity(whole, state, whole.init(state, jax.random.key(3))).digests
numbers = lambda digests: {{k: v for k, v in digests.items() if "code" not in k}}
assert numbers(over) == numbers(found)
print(json.dumps(found | over))
"""


def child(hash_seed, device_count):
    flags = f'import os; os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count={device_count}"'
    script = CHILD.format(root=str(ROOT), device_count=flags)
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)}
    environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # identities are of programs before that
    return subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_identities_are_those_of_other_processes():
    children = [child(0, 1), child(12345, 4)]
    outputs = [process.communicate(timeout=300)[0] for process in children]
    assert outputs[0] == outputs[1]
    assert outputs[0].count("code") == 2


def test_more_than_rounding_of_a_number_is_refused(tmp_path):
    def go(step):
        sim = Simulation(RandomWalk(), jnp.asarray(step, jnp.float32), observers=Every(1, x=x_of))
        start = particles()
        start = jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype == float else x, start)
        return quiet(sim, start, 2, key=1, to=tmp_path, resume=True)

    go(0.1)
    with pytest.raises(MismatchError, match=r"the simulation: \.dt"):
        go(0.10001)
