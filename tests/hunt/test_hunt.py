"""A few draws of the hunt at every change, more of every family with the slow cases; `make hunt` takes all."""

import re
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

import physkit as pk

from . import (
    coupling_draws,
    draws,
    field_draws,
    gradient_draws,
    kinks,
    newton,
    particle_problems,
    restart_draws,
    sweep_draws,
)
from .outcome import judge

# Of the families whose programs compile in a second, draws of a block, which share them.
FEW = [0, *range(3, 9), *range(20, 29), 40, *range(43, 47)]
MORE = 300
ALL = 2000


@pytest.mark.parametrize("number", FEW)
def test_nothing_is_silently_wrong(number):
    outcome = draws.examine(number)
    assert not outcome.is_finding, f"{draws.describe(number)}\n{outcome.text}"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(0, MORE, 5 * draws.BLOCK))
def test_nothing_is_silently_wrong_in_more_draws(block):
    # A process of its own: the draws over devices need two, and programs are dropped with it.
    work = subprocess.run(
        [sys.executable, "-m", "tests.hunt", str(block), str(block + 5 * draws.BLOCK)],
        capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip
    assert work.returncode == 0, work.stdout + work.stderr


def test_a_draw_follows_from_its_number():
    assert draws.describe(1234) == draws.describe(1234)
    assert draws.parts(81)[1] == draws.parts(82)[1]
    assert draws.parts(81)[2] != draws.parts(82)[2]


def test_draws_reach_every_kind():
    """Nothing is drawn that no draw ever has, in the first 2 000."""
    seen = {family: set() for family in draws.FAMILIES}
    for number in range(ALL):
        _, structure, numbers = draws.parts(number)
        for value in [*vars(structure).values(), *vars(numbers).values()]:
            seen[draws.family_of(number)] |= set(value) if isinstance(value, tuple) else {value}
    assert (
        set(particle_problems.STEPPERS) | {"free", "box", "partly", "tilted"} <= seen["particles"]
    )
    assert set(field_draws.EQUATIONS) | {"dirichlet", "neumann"} <= seen["fields"]
    assert set(coupling_draws.KINDS) | {1, 2, 3, 4} <= seen["coupling"]
    assert set(gradient_draws.ADJOINTS) | {"jvp", "vmap", "carry"} <= seen["gradients"]
    assert set(restart_draws.WAYS) | set(restart_draws.MISTAKES) <= seen["restarts"]
    assert {"product", "zip", "states", "keys", "replicas", "stopped"} <= seen["sweeps"]


class TestTheHuntItself:
    """What it must find."""

    def test_a_wrong_number(self, monkeypatch):
        monkeypatch.setattr(newton, "verlet", lambda f, x, v, m, t, dt: (x * (1 + 1e-6), v))
        monkeypatch.setitem(particle_problems.STEPPERS, "twice", newton.verlet)
        outcome = draws.examine(next(n for n in range(3, 40) if _is_plain(n)))
        assert outcome.is_finding
        assert "expected" in outcome.text

    @pytest.mark.slow
    def test_a_wrong_derivative(self, monkeypatch):
        right = gradient_draws._gradient
        twice = lambda *a: jax.tree.map(lambda x: 1.001 * x, right(*a))
        monkeypatch.setattr(gradient_draws, "_gradient", twice)
        found = [draws.examine(n) for n in range(80, 100) if draws.parts(n)[2].way == "grad"]
        assert any("differences give" in outcome.text for outcome in found[:4])

    @pytest.mark.slow
    def test_a_member_that_differs(self, monkeypatch):
        alone = sweep_draws._alone
        monkeypatch.setattr(sweep_draws, "_alone", lambda m, *a: alone(_slower(m), *a))
        assert any("expected" in draws.examine(n).text for n in range(60, 64))

    @pytest.mark.slow
    def test_a_run_that_goes_on_differently(self, monkeypatch):
        run = pk.run
        wrong = lambda sim, *a, resume=False, **k: run(
            _slower(sim) if resume else sim, *a, resume=resume and "changed", **k
        )
        monkeypatch.setattr(pk, "run", wrong)
        ways = ("files", "stopped", "memory")
        found = [draws.examine(n) for n in range(100, 120) if draws.parts(n)[2].way in ways][:4]
        assert any("expected" in outcome.text for outcome in found)

    def test_a_kink_is_no_excuse_for_a_wrong_derivative(self):
        """A limited slope, min(a, b) of positive ones, has none at a = b = 0; a smooth function has one."""
        limited = lambda a, b: np.sign(a) * min(abs(a), abs(b)) if a * b > 0 else 0.0
        line = lambda f, u, slope: kinks.Line(
            lambda s: f(s * u[0], s * u[1]) + 0.3 * s**2, lambda s: slope(s) + 0.6 * s, 1.0, 1.0
        )
        u, v, w = (1.0, 2.0), (0.9, 0.1), (0.1, 1.9)
        parts = lambda f: (line(f, v, lambda s: 0.0), line(f, w, lambda s: 0.0))
        at_kink = lambda wrong: line(limited, u, lambda s: wrong if s else 1.6)
        assert kinks.is_kink(at_kink(1.0), parts(limited), 0.6)
        assert not kinks.is_kink(at_kink(1.001), parts(limited), 0.6)
        smooth = lambda a, b: a + np.sin(b)
        wrong_there = line(smooth, u, lambda s: 1 + 2 * np.cos(2 * s) if s else 2.0)
        assert not kinks.is_kink(wrong_there, parts(smooth), 1.0)
        one_sided = lambda a, b: abs(a)
        assert kinks.is_kink(line(one_sided, u, np.sign), parts(one_sided), 1.0)

    def test_a_raw_error(self):
        def work():
            raise ValueError("zero-size array")

        assert judge(work, ["anything"]).text == "raw error ValueError: zero-size array"

    def test_a_right_program_that_is_refused(self):
        def work():
            raise pk.errors.OverlapError("particles overlap")

        assert judge(work, []).is_finding
        assert judge(work, ["overlap"]).kind == "named"
        assert judge(work, ["mass"]).is_finding

    def test_the_reference_knows_the_nearest_image(self):
        cell = newton.Cell(np.array([[3.0, 0.0], [1.4, 3.0]]), (True, True))
        near = cell.nearest(np.array([[2.9, 1.6]]))[0]
        images = [np.array([2.9, 1.6]) + a * cell.vectors[0] + b * cell.vectors[1]
                  for a in range(-3, 4) for b in range(-3, 4)]  # fmt: skip
        assert np.isclose(np.linalg.norm(near), min(map(np.linalg.norm, images)))

    def test_the_reference_forces_are_gradients(self):
        cell = newton.Cell(np.eye(2) * 4.0, (True, True))
        x = np.array([[0.1, 0.2], [1.3, 0.4], [3.7, 3.5]])
        for kind in ("plain", "shifted", "shifted-force", "switch"):
            force = newton.pairs(*newton.morse(1.0, 3.0, 1.1), 1.6, kind, cell)
            step = 1e-6
            up, down = x.copy(), x.copy()
            up[0, 0] += step
            down[0, 0] -= step
            slope = (force(up, 0, 0).energy - force(down, 0, 0).energy) / (2 * step)
            assert np.isclose(-slope, force(x, 0, 0).force[0, 0], rtol=1e-6)


def _slower(sim):
    return eqx.tree_at(lambda s: s.dt, sim, 0.99 * sim.dt)


def _is_plain(number):
    _, _, numbers = draws.parts(number)
    return numbers.dt_factor == 1.0 and numbers.trouble == "" and numbers.speed == 1.0


def test_the_command_prints_a_draw():
    work = subprocess.run(
        [sys.executable, "-m", "tests.hunt", "no number"], capture_output=True, text=True,
        cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip
    assert work.returncode == 2
    assert re.search("usage: python -m tests.hunt", work.stderr)
