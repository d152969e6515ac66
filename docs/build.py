"""`python docs/build.py FOLDER`: the documentation as static HTML.

Pages are the README, `docs/*.md`, the examples, and a reference made from the docstrings of every
public name. A link to something that the site does not have is an error.
"""

import ast
import html
import importlib
import inspect
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import markdown

ROOT = Path(__file__).resolve().parent.parent
FIRST = (
    "install",
    "concepts",
    "fields",
    "equations",
    "flows",
    "walls",
    "electromagnetism",
    "coupling",
    "write-your-own",
    "fit",
    "search",
    "adjoints",
    "when-gradients-lie",
    "tutorial-mlp",
    "learning",
    "inference",
    "ensembles",
    "ensemble-statistics",
    "cluster",
    "files",
    "other-tools",
    "reliability",
    "devices",
    "several-processes",
    "scaling",
    "gpus",
    "baths",
    "sampling",
    "monte-carlo",
    "events",
    "neighbor-lists",
    "many-body",
    "constraints",
    "rigid_bodies",
    "electrostatics",
    "molecules",
    "qubits",
    "what-can-go-wrong",
)
FOLDERS = {
    "html": "trees, tables and small pictures as HTML",
    "core": "modules, terms, time, errors",
    "geometry": "spaces, grids, boundaries",
    "particles": "particles, lattices, velocities",
    "particles.neighbors": "neighbor lists",
    "particles.forces": "forces and potentials",
    "fields": "fields and spectra",
    "fields.operators": "derivatives",
    "fields.finite_volume": "conservation laws, reconstruction, limiters, Riemann solvers",
    "fields.elliptic": "Poisson and Helmholtz",
    "fields.equations": "partial differential equations",
    "quantum": "qubits, circuits, open systems",
    "spins": "spins on lattices",
    "reactions": "networks of reactions",
    "coupling": "particles and fields together",
    "integrators": "everything that advances a state",
    "observe": "quantities, observers, guards",
    "storage": "files, checkpoints, export",
    "simulate": "the simulation and its verbs",
    "fit": "fits, bounds, standard errors",
    "ensemble": "sweeps, workers, statistics of members",
    "inference": "priors, posteriors, sampling, assimilation",
    "systems": "ready-made simulations",
    "interop": "structures and force fields of other packages",
    "interop.openmm": "force fields from OpenMM",
    "plot": "pictures",
    "testing": "the test battery",
    "testing.validation": "published numbers",
}


class Page(NamedTuple):
    """One page of the site: its file's stem, its title, its group in the navigation, its HTML."""

    stem: str
    title: str
    group: str
    body: str


def build(site: Path) -> list[str]:
    """Write the site; returns its dead links."""
    pages = [*_markdown_pages(), *_examples_page(), _validation_page(), *_reference_pages()]
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir(parents=True)
    shutil.copy(ROOT / "docs/style.css", site)
    for pictures in (ROOT / "docs/images", ROOT / "examples"):
        for picture in sorted(pictures.glob("*.*")):
            if picture.suffix in (".png", ".gif", ".svg", ".jpg"):
                (site / pictures.name).mkdir(exist_ok=True)
                shutil.copy(picture, site / pictures.name)
    for page in pages:
        (site / f"{page.stem}.html").write_text(_wrap_page(page, pages), encoding="utf-8")
    return dead_links(site)


def dead_links(site: Path) -> list[str]:
    """`page: target` for every relative link or picture that does not exist."""
    found = []
    for page in sorted(site.glob("*.html")):
        for target in re.findall(r'(?:href|src)="([^"#]+)', page.read_text(encoding="utf-8")):
            if "://" not in target and not (site / target).exists():
                found.append(f"{page.name}: {target}")
    return found


def _markdown_pages() -> Iterator[Page]:
    yield Page("index", "physkit", "", _html((ROOT / "README.md").read_text(encoding="utf-8")))
    found = {path.stem: path for path in (ROOT / "docs").glob("*.md")}
    order = [s for s in FIRST if s in found] + sorted(set(found) - set(FIRST))
    for stem in order:
        text = found[stem].read_text(encoding="utf-8")
        yield Page(stem, _title(text), "Guide", _html(text))
    others = [("CONTRIBUTING", ROOT), ("CHANGELOG", ROOT), ("benchmarks", ROOT / "benchmarks")]
    for stem, folder in others:
        path = folder / ("README.md" if stem == "benchmarks" else f"{stem}.md")
        if path.exists():
            text = path.read_text(encoding="utf-8")
            yield Page(stem.lower(), _title(text), "Project", _html(text))


def _examples_page() -> Iterator[Page]:
    parts = ["# Examples", "Scripts of a page each; run them with `python examples/NAME.py`."]
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        about = re.match(r'\s*"""(.*?)"""', text, re.DOTALL)
        parts.append(f"## {path.stem.replace('_', ' ')}\n\n{about[1] if about else ''}")
        for picture in sorted(path.parent.glob(f"{path.stem}*.*")):
            if picture.suffix in (".png", ".gif", ".svg"):
                parts.append(f"![{path.stem}](examples/{picture.name})")
        code = text[about.end() :] if about else text
        parts.append(f"```python\n{code.strip()}\n```")
    yield Page("examples", "Examples", "Guide", _html("\n\n".join(parts)))


def _validation_page() -> Page:
    cases = importlib.import_module("physkit.testing.validation").cases()
    rows = [
        f"| {c.name} | {p.name} | {p.value:.12g} | {p.allowed} | {c.source} |".replace("\n", " ")
        for c in cases
        for p in c.published
    ]
    head = "# Published numbers\n\n`physkit validate` computes them again, on your machine.\n\n"
    table = "| case | number | published | tolerance | source |\n|---|---|---|---|---|\n"
    return Page("validation", "Published numbers", "Project", _html(head + table + "\n".join(rows)))


def _reference_pages() -> Iterator[Page]:
    for folder, about in FOLDERS.items():
        module = importlib.import_module(f"physkit.{folder}")
        named = sorted(public_names(module), key=str.lower)
        entries = "".join(_entry(name, getattr(module, name)) for name in named)
        start = f"<h1><code>physkit.{folder}</code></h1>{_html(inspect.getdoc(module) or about)}"
        yield Page(f"api-{folder}", f"{folder}", "Reference", start + entries)


def public_names(module: Any) -> list[str]:
    """Names that a folder's `__init__` re-exports explicitly, as `X as Y`."""
    body = ast.parse(inspect.getsource(module)).body
    froms = [node for node in body if isinstance(node, ast.ImportFrom)]
    return sorted({a.asname for node in froms for a in node.names if a.asname})


def _entry(name: str, value: Any) -> str:
    documented = inspect.isclass(value) or callable(value) or inspect.ismodule(value)
    if not documented:
        return f'<div class="entry" id="{name}"><h3>{name}</h3></div>'
    text = _html(inspect.getdoc(value) or "")
    parts = [f'<div class="entry" id="{name}"><h3>{_signature(name, value)}</h3>{text}']
    members = vars(value).items() if inspect.isclass(value) or inspect.ismodule(value) else ()
    rows = []
    for member, method in members:
        inner = getattr(method, "__func__", method)
        inner = inner.fget if isinstance(inner, property) else inner
        about = getattr(inner, "__doc__", None)
        if member.startswith("_") or not inspect.isfunction(inner) or not about:
            continue
        call = member if isinstance(method, property) else _signature(member, inner)
        rows.append(f"<p><code>{call}</code></p>{_html(inspect.cleandoc(about))}")
    if rows:
        parts.append(f'<div class="methods">{"".join(rows)}</div>')
    return "".join(parts) + "</div>"


def _signature(name: str, value: Any) -> str:
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return html.escape(name)
    shown, star = [], False
    for p in parameters:
        if p.name in ("self", "cls"):
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            shown.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f"={_default(p.default)}"
        shown.append(f"{prefix}{p.name}{default}")
    return html.escape(f"{name}({', '.join(shown)})")


def _default(value: Any) -> str:
    text = repr(value) if not callable(value) else getattr(value, "__name__", repr(value))
    return text if len(text) < 30 and "<" not in text else "…"


def _title(text: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1] if found else "untitled"


def _html(text: str) -> str:
    # Links between the repository's files become links between pages.
    text = re.sub(r"\]\((?:\.\./)?(?:docs/)?([\w-]+)\.md(#[\w-]+)?\)", _page_link, text)
    text = re.sub(r"\]\((?:\.\./)?(examples|benchmarks)/?\)", r"](\1.html)", text)
    text = re.sub(r"\]\((?:\.\./)?docs/images/", "](images/", text)
    text = re.sub(r"\]\(\.\./examples/", "](examples/", text)
    text = re.sub(r"\]\((?:\.\./)?(LICENSE|CITATION\.cff)\)", "](index.html)", text)
    text = re.sub(r"^```python no-run", "```python", text, flags=re.MULTILINE)
    return markdown.markdown(text, extensions=["fenced_code", "tables", "toc", "sane_lists"])


def _page_link(found: re.Match) -> str:
    return f"]({found[1].lower()}.html{found[2] or ''})"


def _wrap_page(page: Page, pages: list[Page]) -> str:
    links, group = [], ""
    for other in pages:
        if other.group != group:
            group = other.group
            links.append(f"<strong>{group}</strong>")
        here = ' class="here"' if other.stem == page.stem else ""
        links.append(f'<a href="{other.stem}.html"{here}>{html.escape(other.title)}</a>')
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(page.title)} – physkit</title>"
        '<link rel="stylesheet" href="style.css"></head>'
        f"<body><nav>{''.join(links)}</nav><main>{page.body}</main></body></html>\n"
    )


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve()
    dead = build(target)
    print(f"{len(list(target.glob('*.html')))} pages in {target}")
    if dead:
        sys.exit("dead links:\n" + "\n".join(dead))
