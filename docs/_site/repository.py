"""Pages that lie outside `docs/`: how to contribute, the changelog, the benchmarks."""

import re
from pathlib import Path

OUTSIDE = {
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
    "benchmarks": "benchmarks/README.md",
}


def pages(root: Path) -> dict[str, str]:
    """File → text, with links between files of the repository turned into links between pages."""
    return {f"generated/{name}.md": _relinked(root / path) for name, path in OUTSIDE.items()}


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
