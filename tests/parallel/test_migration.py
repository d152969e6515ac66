"""Particles that change slabs: what a few of them take the short way for, and many the long one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import replace_fields, shard, unshard
from physkit.parallel import Spmd
from physkit.particles.decomposition import _migration
from physkit.simulate.distributed._spmd_function import SpmdFunction

from .particle_cases import fluid

_WIDTH = 19.2 / 4


@pytest.fixture(autouse=True)
def emulated(monkeypatch):
    """Devices are emulated on one, and there is a short way also for as few particles as here."""
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    monkeypatch.setattr(_migration, "_LARGE_CAPACITY", 1)


def settled(particles):
    return particles.migrate()


def strayed(many):
    """Particles cut into four slabs with room for 16 to leave, of which some have gone on beyond theirs."""
    atoms = fluid(species=np.arange(96) % 3, frozen=np.zeros(96, bool), id=7 * np.arange(96))
    parts = shard(atoms, (4,))
    parts = replace_fields(
        parts, {"ownership": replace_fields(parts.ownership, {"send_capacity": 16})}
    )
    from_side = (np.asarray(parts.position[..., 0]) % _WIDTH - _WIDTH / 2) * np.asarray(
        parts.ownership.mask
    )
    most = np.sort(np.abs(from_side), axis=1)[:, -many][:, None]
    step = np.where(np.abs(from_side) >= most, 0.8 * np.sign(from_side), 0.0)
    moves = jnp.stack([jnp.asarray(step), jnp.zeros(step.shape)], axis=-1)
    return jax.vmap(lambda p, dx: p.shift(pk.components.ParticleIncrement(position=dx)))(
        parts, moves
    )


@pytest.mark.parametrize("many", [2, 12])
def test_whoever_moves_takes_everything_along(many):
    before = strayed(many)
    after = Spmd(SpmdFunction(settled), (4,))(before)
    share, left = after.ownership, np.asarray(before.ownership.mask & ~after.ownership.mask).sum()
    assert not np.asarray(share.faults.bits).any()
    assert (share.num_leaving.max() > share.send_capacity // 4) == (many == 12)
    assert left < 4 * many  # places of those that left are taken again
    owner = np.floor(np.asarray(after.position[..., 0]) / _WIDTH)
    assert np.array_equal(owner[share.mask], np.argwhere(share.mask)[:, 0])
    assert np.array_equal(share.global_index < share.num_particles, share.mask)
    parts = zip(*(jax.tree.leaves(unshard(x, (4,))) for x in (before, after)), strict=True)
    assert all(np.array_equal(a, b) for a, b in parts)


def test_gradients_move_along():
    before = strayed(12)

    def whole(x):
        after = Spmd(SpmdFunction(settled), (4,))(before.replace(position=x))
        return jnp.sum(unshard(after, (4,)).position ** 3)

    x = before.position
    alive = np.asarray(before.ownership.mask)[..., None]
    found = jax.grad(whole)(x)
    assert np.allclose(found, np.where(alive, 3 * x**2, 0), rtol=1e-13, atol=0)
