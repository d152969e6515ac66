"""README, docs, examples and contributors' pages mention only names, files and settings that exist."""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import physkit as pk
from tests.snippets import GUIDES, ROOT

PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")),
        *GUIDES,
    ]
)
SCRIPTS = sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "benchmarks").glob("*.py")])
ARCHITECTURE = ROOT / "docs/architecture.md"

# Class names in texts that are not physkit's.
FOREIGN = {
    "ForceField", "HarmonicAngleForce", "HarmonicBondForce", "NaCl", "NequIP", "NonbondedForce",
    "PeriodicTorsionForce", "SimpleNamespace",
    "DirectAdjoint", "GiB", "H5MD", "JobEnvironment", "KiB", "MiB", "NaN", "NumPy", "StepId",
    "UserWarning", "SummaryWriter",
}  # fmt: skip
# Classes that a page defines itself, in a block that readers copy.
_CLASS = re.compile(r"^\s*class (\w+)", re.MULTILINE)
_CODE = re.compile(r"`+([^`]+)`+")
_CAMEL = re.compile(r"(?<![\w./])([A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+)\b")
_PATH = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)+[\w.-]*\w|_\w+\.py)")
_SETTING = re.compile(r"\bPHYSKIT_[A-Z_]+\b")


def missing_names(text: str) -> list[str]:
    """`pk.X`, `pk.family.X` and `pk.layer.X` in `text` that physkit does not have."""
    missing = set()
    for chain in re.findall(r"\bpk((?:\.[A-Za-z_]\w*)+)", text):
        thing, trail = pk, "pk"
        for name in chain.split(".")[1:]:
            trail = f"{trail}.{name}"
            try:
                thing = getattr(thing, name)
            except AttributeError:
                missing.add(trail)
                break
            # What follows a class or function is an attribute of an instance or result.
            if not (inspect.ismodule(thing) or thing.__class__.__module__.startswith("physkit")):
                break
    return sorted(missing)


def public_names() -> set[str]:
    """What any layer of physkit exports, and the classes of its private files."""
    found = set()
    for module in pkgutil.walk_packages(pk.__path__, "physkit."):
        if not module.name.endswith("__main__"):
            found |= {n for n in vars(importlib.import_module(module.name)) if n[:1].isupper()}
    return found


def missing_classes(text: str, known: set[str]) -> list[str]:
    """Class names in code marks, `VelocityVerlet` or `Every(10, …)`, that nobody defines."""
    own = set(_CLASS.findall(text))
    mentioned = {name for code in _CODE.findall(text) for name in _CAMEL.findall(code)}
    return sorted(mentioned - own - known - FOREIGN)


def public_callables() -> dict[str, list]:
    """Name → what scripts can call by it: front page, families and layers that are shown whole."""
    found: dict[str, list] = {}
    for home in [pk, *(getattr(pk, name) for name in dir(pk))]:
        if inspect.ismodule(home):
            for name in dir(home):
                value = getattr(home, name)
                if callable(value) and not name.startswith("_"):
                    found.setdefault(name, []).append(value)
    return found


def missing_keywords(text: str, callables: dict[str, list]) -> list[str]:
    """`Name(keyword=…)` in code marks, where nothing of that name takes the keyword."""
    missing = set()
    for code in _CODE.findall(text):
        for name, arguments in re.findall(r"(?<![\w.])(\w+)\(([^()]*)\)", code):
            taken = [inspect.signature(value).parameters for value in callables.get(name, ())]
            if any(p.kind is p.VAR_KEYWORD for ps in taken for p in ps.values()):
                continue
            for keyword in re.findall(r"(?:^|[\s,(])(\w+)=", arguments):
                if taken and not any(keyword in ps for ps in taken):
                    missing.add(f"{name}({keyword}=)")
    return sorted(missing)


def missing_files(text: str, *folders: Path) -> list[str]:
    """Paths of sources and pages in code marks that are in none of `folders`."""
    suffixes = (".py", ".md", ".csv", ".toml")
    paths = {p for code in _CODE.findall(text) for p in _PATH.findall(code)}
    return sorted(
        path
        for path in paths
        if path.endswith(suffixes) and not any((folder / path).exists() for folder in folders)
    )


def missing_settings(text: str, sources: str) -> list[str]:
    """Environment variables of physkit that no source reads."""
    return sorted({name for name in _SETTING.findall(text) if name not in sources})


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [*PAGES, *SCRIPTS], ids=relative)
def test_public_names_exist(page):
    assert not missing_names(page.read_text(encoding="utf-8"))


def test_classes_in_code_marks_exist():
    known = public_names()
    # Tables of other codes are full of their names.
    own = [page for page in PAGES if page.parent.name != "coming-from"]
    missing = {relative(p): missing_classes(p.read_text(encoding="utf-8"), known) for p in own}
    assert not {page: names for page, names in missing.items() if names}


def test_keywords_in_code_marks_exist():
    callables = public_callables()
    missing = {
        relative(p): missing_keywords(p.read_text(encoding="utf-8"), callables) for p in PAGES
    }
    assert not {page: names for page, names in missing.items() if names}


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_settings_exist(page):
    sources = [*(ROOT / "physkit").rglob("*.py"), *(ROOT / "tests").glob("*.py")]
    text = "\n".join(p.read_text(encoding="utf-8") for p in [*sources, *SCRIPTS])
    assert not missing_settings(page.read_text(encoding="utf-8"), text)


class TestArchitecturePage:
    text = ARCHITECTURE.read_text(encoding="utf-8")

    def test_files_exist(self):
        # Paths are relative to the package; a bare `_file.py` is in a folder named just before it.
        package = ROOT / "physkit"
        assert not missing_files(self.text, package, ROOT, *_folders(package))

    def test_folders_of_layers_exist(self):
        for layer, folders in _layer_rows(self.text):
            assert (ROOT / "physkit" / layer).is_dir()
            for folder in folders:
                assert (ROOT / "physkit" / layer / folder).is_dir(), f"{layer}/{folder}"

    def test_layers_are_those_of_the_rules(self):
        from tests.architecture import LAYERS

        named = [name for row in _table(self.text, "layer") for name in _CODE.findall(row[0])]
        assert named == list(LAYERS)

    def test_contracts_name_methods_of_their_files(self):
        rows = _table(self.text, "contract")
        assert len(rows) > 5
        for contract, file, methods in rows:
            source = (ROOT / "physkit" / _CODE.findall(file)[0]).read_text(encoding="utf-8")
            for code in _CODE.findall(methods):
                for name in re.findall(r"[a-z_]{3,}", code.split("(")[0]):
                    assert re.search(rf"\b{name}\b", source), f"{contract}: {name} is not in {file}"

    def test_a_function_beside_a_file_is_in_it(self):
        pairs = re.findall(r"`([\w/]+\.py)`[^`\n]{0,6}–[^`\n]{0,6}`([\w.]+)`", self.text)
        assert len(pairs) > 5
        for file, name in pairs:
            source = (ROOT / "physkit" / file).read_text(encoding="utf-8")
            defined = {n.name for n in ast.walk(ast.parse(source)) if hasattr(n, "name")}
            assert set(name.split(".")) <= defined, f"{name} is not in {file}"


def _folders(top: Path) -> list[Path]:
    return [p for p in top.rglob("*") if p.is_dir() and p.name != "__pycache__"]


def _table(text: str, first: str) -> list[list[str]]:
    """The rows of the Markdown table whose first head is `first`, cell by cell."""
    lines = text.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |")) + 2
    rows = []
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def _layer_rows(text: str) -> list[tuple[str, list[str]]]:
    """Layer → the sub-folders, `loop/`, that its row names."""
    found = []
    for layers, holds, *_ in _table(text, "layer"):
        names = _CODE.findall(layers)
        folders = [c.rstrip("/") for c in _CODE.findall(holds) if re.fullmatch(r"\w+/", c)]
        found += [(name, folders if len(names) == 1 else []) for name in names]
    return found


def test_what_is_missing_is_found():
    assert missing_names("pk.Nothing, pk.limiters.Nobody, pk.Every(10), pk.limiters.VanLeer()") == [
        "pk.Nothing",
        "pk.limiters.Nobody",
    ]
    assert missing_classes("`NoSuchClass(1)` beside `MyOwn`\nclass MyOwn:", set()) == [
        "NoSuchClass"
    ]
    calls = "`Pairwise(listed=False)`, `Pairwise(exact=True)`, `Guard(10, f)`, `unknown(x=1)`"
    assert missing_keywords(calls, public_callables()) == ["Pairwise(listed=)"]
    assert missing_files("in `core/_gone.py` and `docs/files.md`", ROOT) == ["core/_gone.py"]
    assert missing_settings("PHYSKIT_A and PHYSKIT_B", "PHYSKIT_A") == ["PHYSKIT_B"]
