"""What is on axes."""

import numpy as np


def line(ax, k=0):
    return np.asarray(ax.lines[k].get_xydata())


def labels(ax):
    return ax.get_xlabel(), ax.get_ylabel()
