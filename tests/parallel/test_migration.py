"""Particles that change slabs: what a few of them take the short way for, and many the long one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import cut, gathered, replaced
from physkit.parallel import Spmd
from physkit.particles import _share
from physkit.simulate._devices import OnEach

from .particles import fluid

_WIDTH = 19.2 / 4


@pytest.fixture(autouse=True)
def emulated(monkeypatch):
    """Devices are emulated on one, and there is a short way also for as few particles as here."""
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    monkeypatch.setattr(_share, "_MANY", 1)


def settled(particles):
    return particles.settled()


def strayed(many):
    """Particles cut into four slabs with room for 16 to leave, of which some have gone on beyond theirs."""
    atoms = fluid(species=np.arange(96) % 3, frozen=np.zeros(96, bool), id=7 * np.arange(96))
    parts = cut(atoms, (4,))
    parts = replaced(parts, {"share": replaced(parts.share, {"room": 16})})
    from_side = (np.asarray(parts.position[..., 0]) % _WIDTH - _WIDTH / 2) * np.asarray(
        parts.share.alive
    )
    most = np.sort(np.abs(from_side), axis=1)[:, -many][:, None]
    step = np.where(np.abs(from_side) >= most, 0.8 * np.sign(from_side), 0.0)
    moves = jnp.stack([jnp.asarray(step), jnp.zeros(step.shape)], axis=-1)
    return jax.vmap(lambda p, dx: p.shift(pk.Motion(position=dx)))(parts, moves)


@pytest.mark.parametrize("many", [2, 12])
def test_whoever_moves_takes_everything_along(many):
    before = strayed(many)
    after = Spmd(OnEach(settled), (4,))(before)
    share, left = after.share, np.asarray(before.share.alive & ~after.share.alive).sum()
    assert not np.asarray(share.faults.bits).any()
    assert (share.leaving.max() > share.room // 4) == (many == 12)
    assert left < 4 * many  # places of those that left are taken again
    owner = np.floor(np.asarray(after.position[..., 0]) / _WIDTH)
    assert np.array_equal(owner[share.alive], np.argwhere(share.alive)[:, 0])
    assert np.array_equal(share.place < share.total, share.alive)
    parts = zip(*(jax.tree.leaves(gathered(x, (4,))) for x in (before, after)), strict=True)
    assert all(np.array_equal(a, b) for a, b in parts)


def test_gradients_move_along():
    before = strayed(12)

    def whole(x):
        after = Spmd(OnEach(settled), (4,))(before.replace(position=x))
        return jnp.sum(gathered(after, (4,)).position ** 3)

    x = before.position
    alive = np.asarray(before.share.alive)[..., None]
    found = jax.grad(whole)(x)
    assert np.allclose(found, np.where(alive, 3 * x**2, 0), rtol=1e-13, atol=0)
