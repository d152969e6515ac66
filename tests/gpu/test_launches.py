"""Launches, waits of the host, float atomics and low-precision dots a step, as compiled for an H100."""

import json

import jax
import pytest

from benchmarks.gpu.__main__ import BUDGETS
from benchmarks.gpu._count import Cost, Program, low_precision_dots
from benchmarks.gpu._measure import measure
from benchmarks.gpu._systems import SYSTEMS
from benchmarks.gpu._target import MISSING, has_compiler

KEPT = json.loads(BUDGETS.read_text())
compiled = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_compiler(), reason=MISSING),
    pytest.mark.skipif(
        jax.__version__ != KEPT["jax"],
        reason=f"budgets are for JAX {KEPT['jax']}: XLA fuses otherwise",
    ),
]


@pytest.fixture(autouse=True)
def with_kernels(without_native_code, monkeypatch):
    """Programs as they are on a machine with a GPU."""
    monkeypatch.setenv("PHYSKIT_NATIVE", "cuda")


def over(found, budget):
    """Launches to 5 % and two more; everything else exactly."""
    return {
        name: (found[name], allowed)
        for name, allowed in budget.items()
        if found[name] > (1.05 * allowed + 2 if name in ("launches", "most") else allowed)
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=compiled)
        for name in SYSTEMS
        for kind in KEPT["systems"].get(name, {})
    ],
)
def test_no_step_costs_more_than_its_budget(name, kind):
    assert not over(measure(name, kind), KEPT["systems"][name][kind])


def test_every_system_has_a_budget():
    """`python -m benchmarks.gpu SYSTEM --keep` makes one."""
    assert set(KEPT["systems"]) == set(SYSTEMS)
    assert all("forward" in kinds for kinds in KEPT["systems"].values())


# A step with a loop of three turns, a decision, a loop of unknown length and an atomic addition.
TEXT = """\
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%atomic (p: f32[8], i: s32[4,1], u: f32[4]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %i = s32[4,1]{1,0} parameter(1)
  %u = f32[4]{0} parameter(2)
  ROOT %s = f32[8]{0} scatter(%p, %i, %u), update_window_dims={}, to_apply=%add
}

%three (t: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t = (s32[], f32[8]{0}) parameter(0)
  %x = f32[8]{0} get-tuple-element(%t), index=1
  %k1 = f32[8]{0} fusion(%x), kind=kLoop, calls=%f
  %k2 = f32[8]{0} custom-call(%k1), custom_call_target="__cublas$gemm"
  ROOT %r = (s32[], f32[8]{0}) tuple(%x, %k2)
}

%keep (x: f32[8]) -> f32[8] {
  ROOT %x = f32[8]{0} parameter(0)
}

%rebuild (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %k1 = f32[8]{0} sort(%x), dimensions={0}, to_apply=%add
  ROOT %k2 = f32[8]{0} fusion(%k1), kind=kInput, calls=%atomic
}

%always (t: (s32[], f32[8])) -> pred[] {
  %t = (s32[], f32[8]{0}) parameter(0)
  ROOT %k = pred[] fusion(%t), kind=kLoop, calls=%f
}

%step (t: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t = (s32[], f32[8]{0}) parameter(0)
  %a = (s32[], f32[8]{0}) while(%t), condition=%always, body=%three, \
backend_config={"known_trip_count":{"n":"3"}}
  %b = f32[8]{0} conditional(%p, %x, %x), branch_computations={%keep, %rebuild}
  ROOT %c = (s32[], f32[8]{0}) while(%a), condition=%always, body=%three
}

ENTRY %main (t: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t = (s32[], f32[8]{0}) parameter(0)
  %c = f32[8]{0} copy(%x)
  %s = ((f32[8]{0}), f32[8]{0}) fusion-start(%c), kind=kInput, calls=%atomic
  %e = f32[8]{0} fusion-done(%s)
  ROOT %w = (s32[], f32[8]{0}) while(%t), condition=%always, body=%step
}
"""


def test_counting():
    program = Program(TEXT)
    # 3 · 2 of the loop, 0 or 2 of the decision, 2 + 2 · 1 of the loop of unknown length.
    assert program.step() == Cost(launches=10, most=12, syncs=3, scatters=1)
    assert program.turns(3) == Cost()
    known = TEXT.replace("body=%step", 'body=%step, backend_config={"known_trip_count":{"n":"7"}}')
    assert Program(known).turns(7) == program.step()
    # A copy and a kernel that runs beside others, besides: started once, waited for without a launch.
    assert program.cost() == Cost(launches=14, most=16, syncs=5, scatters=2)


def test_dots_that_may_be_rounded():
    rounded = "%1 = stablehlo.dot_general %a, %b, precision = [DEFAULT, DEFAULT] : tensor<3x3xf32>"
    assert low_precision_dots(rounded) == 1
    assert low_precision_dots(rounded.replace("DEFAULT", "HIGHEST")) == 0
    assert low_precision_dots(rounded.replace("f32", "f64")) == 0
