"""Arguments by position come in one order, whichever public class or function takes them."""

import inspect
import itertools

import pytest

import physkit as pk
from physkit._names import FAMILIES, FRONT_PAGE

# Pairs of arguments that cannot be confused: what they take differs in kind, so that a swap is an error.
DIFFERENT_KINDS = {
    frozenset(pair)
    for pair in (
        # Snapshots and contracts of integrators: structures, a clock and a term.
        ("aux", "plan"), ("clock", "plan"), ("plan", "state"),
        ("boundary", "location"), ("coefficients", "location"),
        ("noise", "steps"),  # `Fit` is a result, which nobody calls
    )
}  # fmt: skip


def positional(name, member):
    """The names of what is taken by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(member).parameters.values()
    except (TypeError, ValueError):
        return name, []
    return name, [p.name for p in parameters if p.kind in kinds and p.name not in ("self", "cls")]


def public_signatures():
    found = {}
    names = [n for layer in FRONT_PAGE.values() for n in layer]
    objects = {name: getattr(pk, name) for name in names}
    for family in FAMILIES:
        space = getattr(pk, family)
        objects |= {f"{family}.{name}": getattr(space, name) for name in dir(space)}
    objects |= {f"systems.{k}": x for k, x in vars(pk.systems).items() if inspect.isfunction(x)}
    for name, member in objects.items():
        if callable(member) and not name.rsplit(".", 1)[-1].startswith("_"):
            found[name] = positional(name, member)[1]
    return found


def swapped_pairs(signatures):
    """Pairs of arguments, with one callable for each of the two orders."""
    orders = {}
    for name, arguments in signatures.items():
        for pair in itertools.combinations(arguments, 2):
            orders.setdefault(frozenset(pair), {}).setdefault(pair, name)
    return {pair: found for pair, found in orders.items() if len(found) > 1}


def test_no_two_take_the_same_arguments_in_different_orders():
    signatures = public_signatures()
    assert len(signatures) > 300
    swapped = swapped_pairs(signatures)
    assert {tuple(sorted(p)): f for p, f in swapped.items() if p not in DIFFERENT_KINDS} == {}


def test_the_check_finds_them():
    assert swapped_pairs({"f": ["a", "b"], "g": ["b", "c", "a"], "h": ["a", "c"]}).keys() == {
        frozenset("ab"),
        frozenset("ac"),
    }


def test_old_positional_calls_say_what_is_given_by_name():
    errors = {
        "coriolis": lambda: pk.equations.ShallowWater(9.81, 1e-4),
        "bed": lambda: pk.equations.ShallowWaterFV(9.81, 0.0),
        "density": lambda: pk.systems.lennard_jones_melt(4, 0.8),
        "cells": lambda: pk.systems.lennard_jones_box(0.8, 1.5, 4),
        "mass": lambda: pk.systems.giant_planets([1.0]),
        "viscosity": lambda: pk.systems.cole_hopf_wave(0.0, 0.5, 0.1),
    }
    for argument, call in errors.items():
        with pytest.raises(pk.errors.DeclarationError, match=f"{argument}.*given by name"):
            call()
