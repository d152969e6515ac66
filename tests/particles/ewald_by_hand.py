"""Coulomb sums of few charges in a periodic box by NumPy: what Ewald sums are measured by."""

import itertools

import numpy as np
from scipy.special import erfc


def exact_values(state, damping=1.0, near=3, far=8):
    """Force, energy, virial of neutral charges in a cell of some 5 or 6: what is left out is below 1e-8."""
    x, q, vectors = (
        np.asarray(a, float) for a in (state.position, state.charge, state.space.cell(3))
    )
    shifts = np.array(list(itertools.product(range(-near, near + 1), repeat=3))) @ vectors
    d = (x[:, None] - x[None])[:, :, None] + shifts
    r = np.linalg.norm(d, axis=-1)
    r[r == 0] = np.inf
    charges = (q[:, None] * q[None])[..., None]
    each = charges * erfc(damping * r) / r
    gauss = charges * 2 * damping / np.sqrt(np.pi) * np.exp(-((damping * r) ** 2))
    strength = np.where(np.isinf(r), 0, (each + gauss) / r**2)
    force = np.sum(strength[..., None] * d, axis=(1, 2))
    energy = np.sum(each) / 2 - damping / np.sqrt(np.pi) * np.sum(q**2)
    virial = np.einsum("ijs,ijsa,ijsb->ab", strength, d, d) / 2
    # Waves, but that of length infinity.
    modes = np.array(list(itertools.product(range(-far, far + 1), repeat=3)))
    modes = modes[np.any(modes != 0, axis=1)]
    k = 2 * np.pi * modes @ np.linalg.inv(vectors).T
    k2 = np.sum(k**2, axis=1)
    waves = np.exp(1j * k @ x.T)
    sums = waves @ q
    weight = 2 * np.pi / abs(np.linalg.det(vectors)) * np.exp(-k2 / (4 * damping**2)) / k2
    parts = weight * np.abs(sums) ** 2
    slopes = 2 * weight[:, None] * q * np.imag(np.conj(sums)[:, None] * waves)
    force += slopes.T @ k
    bent = 2 * (1 / k2 + 1 / (4 * damping**2))
    virial += np.sum(parts) * np.eye(3) - np.einsum("w,wa,wb->ab", parts * bent, k, k)
    return force, energy + np.sum(parts), virial
