"""Every line of `wrong_calls.py`, tried as a user would: in single precision, without checked annotations.

A script that prints a JSON list of faults. `test_wrong_calls.py` runs it in a process of its own.
"""

import json
import sys
import traceback
import types
import warnings

from tests.wrong_calls import RIGHT, SETUP, WRONG


def run_line(line: str, names: dict) -> object:
    """The value of an expression, or None of a statement."""
    try:
        code = compile(line, "<user>", "eval")
    except SyntaxError:
        head, _, tail = line.partition("; ")
        for part in (head, tail):
            exec(part, names)
        return None
    return eval(code, names)


def judge_error(error: Exception, says: str) -> str | None:
    """What is wrong with the error of a wrong call; None if it is one of ours and names cause and remedy."""
    import physkit as pk

    text = str(error)
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1].filename if frames else ""
    ours = isinstance(error, pk.PhyskitError) or "/physkit/" in last
    # Raised in our code by Python itself: these texts are nobody's explanation.
    raw = ("object has no attribute", "unsupported operand", "not iterable", "unexpected keyword")
    if not ours or any(part in text for part in raw):
        return f"raw {type(error).__name__}: {text[:200]}"
    return None if says in text else f"does not say {says!r}: {type(error).__name__}: {text[:300]}"


def try_all() -> list[str]:
    """Every fault: a wrong call that ends in a raw error or in none, or a right one that does not work."""
    module = types.ModuleType("user")  # where the classes of the lines are defined
    sys.modules["user"] = module
    names = module.__dict__
    exec(SETUP, names)
    faults = []
    for line in filter(None, WRONG.splitlines()):
        call, _, says = line.rpartition(" | ")
        try:
            value = run_line(call, dict(names))
        except Exception as error:
            if (fault := judge_error(error, says)) is not None:
                faults.append(f"{call}: {fault}")
        else:
            faults.append(f"{call}: no error, but {value!r:.100}")
    for line in filter(None, RIGHT.splitlines()):
        call, _, truth = line.rpartition(" | ")
        try:
            it = run_line(call, dict(names))
            if not eval(truth, {**names, "it": it}):
                faults.append(f"{call}: not {truth}")
        except Exception as error:
            faults.append(f"{call}: {type(error).__name__}: {error}"[:300])
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(2):
            exec(
                "pk.Particles(np.zeros((2, 3))); pk.init(decay, np.ones(3)); pk.Field(np.zeros(16), grid)",
                names,
            )
    notes = [str(w.message) for w in shown]
    if len(notes) != 1 or "jax_enable_x64" not in notes[0]:
        faults.append(f"the precision is said once; got {notes}")
    return faults


if __name__ == "__main__":
    print(json.dumps(try_all()))
