"""Looking at three dimensions: a parallel projection, and the edges of cells."""

import itertools

import numpy as np

from ._types import Numbers


def view_matrix(azimuth: int | float, elevation: int | float) -> np.ndarray:
    """Rows: right, up and towards the eye, for a camera at these angles in degrees; z points up."""
    a, e = np.radians([azimuth, elevation])
    right = [-np.sin(a), np.cos(a), 0]
    up = [-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)]
    eye = [np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)]
    return np.array([right, up, eye])


def cell_edges(cell: Numbers) -> np.ndarray:
    """The edges of the cell spanned by the rows of `cell`, from the origin: `[edges 2 d]`."""
    cell = np.asarray(cell, float)
    d = len(cell)
    # 2^(d−1) edges along each of the d directions, one from every corner of the opposite face.
    edges = []
    for k in range(d):
        others = [j for j in range(d) if j != k]
        for corner in itertools.product((0, 1), repeat=d - 1):
            start = sum((c * cell[j] for c, j in zip(corner, others, strict=True)), np.zeros(d))
            edges.append((start, start + cell[k]))
    return np.array(edges)


def hidden_edges(edges: np.ndarray, eye: np.ndarray) -> np.ndarray:
    """Which edges of a cell meet in its farthest corner, so that what it holds hides them."""
    depth = edges @ eye  # of both ends of each edge; larger is nearer
    return np.isclose(depth, depth.min(), atol=1e-8 * np.ptp(depth)).any(axis=1)
