"""Every published number that ships with physkit, and the machinery that judges them."""

import math

import pytest

from physkit.core import DeclarationError, ParameterError
from physkit.testing.validation import (
    Case,
    Published,
    cases,
    evaluate,
    missing_data,
    reference_data,
)

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_published_numbers[tunneling]",
    "test_published_numbers[lorenz-exponent]",
)


def _as_parameter(case):
    marks = [pytest.mark.slow] if case.slow else []
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", map(_as_parameter, cases()))
def test_published_numbers(case):
    if missing_data(case):
        pytest.skip(missing_data(case))
    failed = [f for f in evaluate(case) if not f.passed]
    assert not failed, [(f.label, f.computed, f.published.value, f.note) for f in failed]


def test_cases_are_documented_and_distinct():
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)
    for case in cases():
        assert case.compute.__doc__, case.name
        assert case.source, case.name


@pytest.mark.parametrize(
    ("kind", "value", "tolerance", "inside", "outside"),
    [
        ("absolute", 2.0, 0.1, 2.09, 1.89),
        ("absolute", -2.0, 0.1, -2.09, 2.0),
        ("relative", -200.0, 0.01, -201.9, -202.1),
        ("at most", 0.325, 0.0, -1.0, 0.326),
        ("at least", 1.95, 0.0, 3.0, 1.949),
    ],
)
def test_tolerances_by_kind(kind, value, tolerance, inside, outside):
    number = Published("x", value, tolerance, kind)
    assert number.accepts(inside)
    assert not number.accepts(outside)
    assert not number.accepts(math.nan)


def _raises():
    raise ArithmeticError("no digits left")


def test_a_wrong_or_broken_case_does_not_pass():
    wanted = (Published("x", 1.0, 1e-3),)
    assert evaluate(Case("right", lambda: {"x": 1.0}, wanted, "—"))[0].passed
    assert not evaluate(Case("wrong", lambda: {"x": 1.1}, wanted, "—"))[0].passed
    broken = evaluate(Case("broken", _raises, wanted, "—"))[0]
    assert not broken.passed
    assert "no digits left" in broken.note


def test_a_case_must_compute_what_it_publishes():
    case = Case("other", lambda: {"y": 1.0}, (Published("x", 1.0, 1e-3),), "—")
    with pytest.raises(DeclarationError, match="'y'"):
        evaluate(case)
    with pytest.raises(DeclarationError, match="distinct"):
        Case("twice", dict, (Published("x", 1, 1), Published("x", 2, 1)), "—")


def test_reference_data(monkeypatch, tmp_path):
    case = Case(
        "files", lambda: {"x": 1.0}, (Published("x", 1, 1),), "—", needs_reference_data=True
    )
    monkeypatch.delenv("PHYSKIT_REFERENCE_DATA", raising=False)
    assert "PHYSKIT_REFERENCE_DATA" in missing_data(case)
    with pytest.raises(ParameterError, match="not a folder"):
        reference_data()
    monkeypatch.setenv("PHYSKIT_REFERENCE_DATA", str(tmp_path))
    assert not missing_data(case)
    assert reference_data() == tmp_path
