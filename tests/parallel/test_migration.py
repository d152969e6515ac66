"""Migration between slabs: few particles take the small buffers, many the large ones."""

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
    """Devices are emulated on one, and small buffers are used for as few particles as here, too."""
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    monkeypatch.setattr(_migration, "_LARGE_CAPACITY", 1)


def migrate(particles):
    return particles.migrate()


def displaced_fluid(num_per_slab):
    """Particles over four slabs with send buffers for 16; the outermost of each slab have left it."""
    atoms = fluid(species=np.arange(96) % 3, frozen=np.zeros(96, bool), id=7 * np.arange(96))
    parts = shard(atoms, (4,))
    parts = replace_fields(
        parts, {"ownership": replace_fields(parts.ownership, {"send_capacity": 16})}
    )
    from_side = (np.asarray(parts.position[..., 0]) % _WIDTH - _WIDTH / 2) * np.asarray(
        parts.ownership.mask
    )
    most = np.sort(np.abs(from_side), axis=1)[:, -num_per_slab][:, None]
    step = np.where(np.abs(from_side) >= most, 0.8 * np.sign(from_side), 0.0)
    moves = jnp.stack([jnp.asarray(step), jnp.zeros(step.shape)], axis=-1)
    return jax.vmap(lambda p, dx: p.shift(pk.components.ParticleIncrement(position=dx)))(
        parts, moves
    )


@pytest.mark.parametrize("num_leaving", [2, 12])
def test_migrating_particles_take_all_their_arrays_along(num_leaving):
    before = displaced_fluid(num_leaving)
    after = Spmd(SpmdFunction(migrate), (4,))(before)
    ownership, left = (
        after.ownership,
        np.asarray(before.ownership.mask & ~after.ownership.mask).sum(),
    )
    assert not np.asarray(ownership.faults.bits).any()
    assert (ownership.num_leaving.max() > ownership.send_capacity // 4) == (num_leaving == 12)
    assert left < 4 * num_leaving  # places of those that left are taken again
    owner = np.floor(np.asarray(after.position[..., 0]) / _WIDTH)
    assert np.array_equal(owner[ownership.mask], np.argwhere(ownership.mask)[:, 0])
    assert np.array_equal(ownership.global_index < ownership.num_particles, ownership.mask)
    parts = zip(*(jax.tree.leaves(unshard(x, (4,))) for x in (before, after)), strict=True)
    assert all(np.array_equal(a, b) for a, b in parts)


def test_cotangents_migrate_with_their_particles():
    before = displaced_fluid(12)

    def outcome(x):
        after = Spmd(SpmdFunction(migrate), (4,))(before.replace(position=x))
        return jnp.sum(unshard(after, (4,)).position ** 3)

    x = before.position
    mask = np.asarray(before.ownership.mask)[..., None]
    found = jax.jit(jax.grad(outcome))(x)
    assert np.allclose(found, np.where(mask, 3 * np.asarray(x) ** 2, 0), rtol=1e-13, atol=0)
