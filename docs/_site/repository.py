"""Pages that lie outside `docs/`: how to contribute, the changelog, the benchmarks."""

import re
from pathlib import Path

OUTSIDE = {
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
    "benchmarks": "benchmarks/README.md",
}


def pages(root: Path) -> dict[str, str | bytes]:
    """File → text, with links between files of the repository turned into links between pages."""
    found: dict[str, str | bytes] = {
        f"generated/{name}.md": _relinked(root / path) for name, path in OUTSIDE.items()
    }
    results = sorted((root / "benchmarks/results").glob("*.md"))
    found |= {f"generated/results-{path.stem}.md": _relinked(path) for path in results}
    pictures = (root / "benchmarks/results").glob("*.png")
    found |= {f"generated/{path.name}": path.read_bytes() for path in pictures}
    listed = "\n".join(f"results-{path.stem}" for path in results)
    found["generated/benchmarks.md"] += (
        "\n## The tables, as they were printed, with their days\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    )
    return found


def _relinked(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return re.sub(
        r"\]\(([^)#:]+)(#[^)]*)?\)", lambda found: f"]({_page(found[1])}{found[2] or ''})", text
    )


def _page(target: str) -> str:
    stem = Path(target).stem
    if "docs/images/" in target:
        return f"../images/{Path(target).name}"
    if target.strip("./").startswith("examples"):
        return "../gallery/index.md"
    for name, source in OUTSIDE.items():
        if target.removeprefix("../") in (source, Path(source).parent.as_posix() + "/"):
            return f"{name}.md"
    if target.endswith(".md"):
        return f"../{stem}.md"
    return target
