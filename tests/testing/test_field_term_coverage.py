"""Every term on fields is put through the battery somewhere: what is new must be examined, too."""

import ast
from pathlib import Path

import pytest

import physkit.coupling
import physkit.fields.equations
from physkit.core import AbstractTerm, is_abstract

TESTS = Path(__file__).parent.parent
EXAMINERS = {"check_tendency", "check_force"}


def shipped():
    """Names of the terms that a script may use."""
    folders = (physkit.fields.equations, physkit.coupling)
    found = {name: thing for folder in folders for name, thing in vars(folder).items()}
    is_term = lambda x: isinstance(x, type) and issubclass(x, AbstractTerm) and not is_abstract(x)
    return sorted(name for name, thing in found.items() if is_term(thing))


def examined(text: str) -> set[str]:
    """Names that a test file calls, if it calls an examiner at all."""
    calls = [n.func for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
    names = {f.id if isinstance(f, ast.Name) else getattr(f, "attr", "") for f in calls}
    return names if names & EXAMINERS else set()


def test_what_is_examined_is_found_by_name():
    assert "Burgers" in examined("check_tendency(pk.equations.Burgers(0.1), u)")
    assert not examined("assert Burgers(0.1)")


@pytest.mark.parametrize("name", shipped())
def test_passes_the_battery_somewhere(name):
    files = [*(TESTS / "fields").glob("*.py"), *(TESTS / "coupling").glob("*.py")]
    assert any(name in examined(path.read_text(encoding="utf-8")) for path in files), (
        f"{name} is shipped and never examined: add it to a table that check_tendency goes through"
    )
