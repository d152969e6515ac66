"""Random numbers of NumPy and Python in a function of a simulation, which every step would repeat, are told."""

import warnings

import pytest

import physkit as pk
from physkit.core import drop_outdated_programs

DRAWS = """
import random
import jax, numpy as np
from numpy.random import normal
generator = np.random.default_rng(0)
drawn = generator.normal(size=3)
def by_module(t, y): return np.random.normal() - y
def by_name(t, y): return normal() - y
def by_python(t, y): return random.random() - y
def by_generator(t, y): return generator.normal() - y
class Drawing:
    def __init__(self): self.own, self.k = np.random.default_rng(1), np.random.rand()
    def by_method(self, t, y): return self.own.normal() - y
    def beforehand_by_method(self, t, y): return -self.k * y
by_method, beforehand_by_method = Drawing().by_method, Drawing().beforehand_by_method
def beforehand(t, y): return -drawn[0] * y
def by_seed(t, y): return -np.random.default_rng(0).normal() * y
def by_callback(t, y): return jax.pure_callback(lambda y: np.random.normal() * y, y, y)
"""


@pytest.mark.parametrize("name", ["by_module", "by_name", "by_python", "by_generator", "by_method"])
def test_random_numbers_that_every_step_repeats_are_told(name):
    cells = {"__name__": "cells"}
    exec(DRAWS, cells)
    with pytest.warns(pk.errors.PhyskitWarning, match=f"{name} draws from .*same numbers"):
        drop_outdated_programs(pk.RK4(cells[name]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drop_outdated_programs(pk.RK4(cells[name]))


@pytest.mark.parametrize("name", ["beforehand", "beforehand_by_method", "by_seed", "by_callback"])
def test_random_numbers_that_are_drawn_otherwise_are_not(name):
    cells = {"__name__": "cells"}
    exec(DRAWS, cells)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drop_outdated_programs(pk.RK4(cells[name]))
