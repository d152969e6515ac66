"""Distances between particles by brute force."""

import numpy as np


def nearest_image_distances(position, box):
    """`[n n]` distances over all images of neighboring cells; infinite for a particle with itself."""
    x = np.asarray(position)
    d = x[:, None] - x[None]
    cell = np.asarray(box.cell(x.shape[1]))
    f = d @ np.linalg.inv(cell)
    shifts = np.stack(np.meshgrid(*[[-1, 0, 1]] * x.shape[1], indexing="ij"), -1)
    shifts = shifts.reshape(-1, x.shape[1])
    r = np.linalg.norm((f[:, :, None] - np.round(f)[:, :, None] + shifts) @ cell, axis=-1)
    r = r.min(axis=-1)
    np.fill_diagonal(r, np.inf)
    return r
