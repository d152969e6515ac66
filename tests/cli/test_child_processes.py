"""Code and command lines that physkit hands to other processes name what exists.

Such text is found by no importer and by no renaming tool: a wrong name shows only where the child runs.
"""

import ast
import importlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import physkit as pk
from physkit.cli._main import _make_parser
from physkit.cli.demo import _ensemble
from physkit.cli.sweep import _local_workers
from tests.architecture import files, module_name


def code_in_strings(path: str, text: str) -> Iterator[tuple[int, str]]:
    """(line, code) of every string that imports from physkit, its placeholders filled in."""
    tree = ast.parse(text)
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            code = "".join(_filled_in(part, path) for part in node.values)
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
        ):
            code = node.value
        else:
            continue
        if "import" in code and "physkit" in code:
            yield node.lineno, code


def _filled_in(part: ast.expr, path: str) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    match ast.unparse(part.value):
        case "__name__":
            return module_name(path)
        case name if name.endswith(".__name__"):
            return name.removesuffix(".__name__")
    return "unknown_placeholder"


def names_that_do_not_exist(code: str) -> list[str]:
    """What `code` imports from physkit, or reads as `pk.…`, that is not there; nothing for other text."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return []  # a sentence, or a docstring
    missing = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("physkit"):
            for alias in node.names:
                missing += _missing(importlib.import_module(node.module), alias.name, node.module)
        elif isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            if dotted.startswith("pk.") and dotted.replace(".", "").isidentifier():
                missing += _missing(pk, dotted.removeprefix("pk."), "pk")
    return missing


def _missing(owner: object, dotted: str, where: str) -> list[str]:
    for name in dotted.split("."):
        if not hasattr(owner, name):
            return [f"{where} has no {dotted}"]
        owner = getattr(owner, name)
    return []


def test_code_in_strings_names_what_exists():
    found = [
        (path, line, code) for path, text in files() for line, code in code_in_strings(path, text)
    ]
    assert any("run_in_child" in code for _, _, code in found), (
        "the demo starts a child by a string"
    )
    wrong = [
        f"{path}:{line}: {complaint}"
        for path, line, code in found
        for complaint in names_that_do_not_exist(code)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "source",
    [
        'code = "from physkit.cli.demo._two_devices import child"',
        'code = f"import sys; from {__name__} import {gone.__name__}; {gone.__name__}()"',
        'code = f"from {__name__} import {name}"',
        'code = "import physkit as pk; pk.systems.no_such_system()"',
    ],
)
def test_a_string_that_names_something_else_is_found(source):
    path = "physkit/cli/demo/_two_devices.py"
    ((_, code),) = code_in_strings(path, source)
    assert names_that_do_not_exist(code)


def _parsed(command: list[str]):
    """The arguments of `python -m physkit …`, as physkit itself parses them."""
    assert command[:3] == [sys.executable, "-m", "physkit"]
    return _make_parser().parse_args(command[3:])


def test_workers_of_the_demo_are_started_by_a_command_that_physkit_takes():
    values = ("replicas=4", "time=1.0")
    args = _parsed(_ensemble.worker_command(Path("case.py"), Path("out"), values, 4))
    assert (args.case, args.to, args.values, args.chunk_size) == ("case.py", "out", [*values], 4)


def test_workers_on_this_machine_are_started_by_a_command_that_physkit_takes():
    words = [
        "sweep",
        "run",
        "case.py",
        "--to",
        "out",
        "--set",
        "a=1",
        "--double",
        "--chunk-size",
        "5",
        "--workers",
        "3",
    ]
    asked = _make_parser().parse_args(words)
    args = _parsed(_local_workers.worker_command(asked, 2, 60.0))
    assert (args.worker, args.workers, args.wall_time) == ("2/3", 1, 60.0)
    for name in ("case", "to", "values", "double", "chunk_size"):
        assert getattr(args, name) == getattr(asked, name)
    # Workers of one of several such commands share its part; only their parent asks for a requeue.
    asked = _make_parser().parse_args([*words, "--worker", "1/4", "--requeue"])
    args = _parsed(_local_workers.worker_command(asked, 2, None))
    assert (args.worker, args.requeue) == ("5/12", False)


def test_a_job_script_calls_physkit_by_a_command_that_it_takes():
    command = ["physkit", "sweep", "run", "case.py", "--to", "out"]
    script = pk.SlurmArray(elements=4).script(command, name="test")
    words = shlex.split(script.strip().splitlines()[-1])
    args = _make_parser().parse_args(words[words.index("physkit") + 1 :])
    assert args.worker == "$SLURM_ARRAY_TASK_ID/4"
    assert args.requeue
