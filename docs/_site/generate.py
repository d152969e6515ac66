"""Writes the pages that are made from the code, before Sphinx reads the folder."""

import re
from pathlib import Path

from sphinx.application import Sphinx

from . import gallery, published, reference, repository, used, words

GENERATED = ("api", "gallery", "generated")
_OUTSIDE = {
    "examples/?": "gallery/index",
    r"benchmarks/?(?:README\.md)?": "generated/benchmarks",
    r"CHANGELOG\.md": "generated/changelog",
    r"CONTRIBUTING\.md": "generated/contributing",
}


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir)))
    app.connect("source-read", _link_outside)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(docs: Path) -> None:
    """Write `api/`, `gallery/` and `generated/`; what they no longer have is removed."""
    examples = gallery.pages(docs.parent / "examples", docs)
    shown = {
        name.removesuffix(".md"): text
        for name, text in examples.items()
        if name.startswith("gallery/") and name.endswith(".md") and isinstance(text, str)
    }
    shown.pop("gallery/index")
    pages = {
        **reference.pages(used.used_in({**used.guides(docs), **shown})),
        **examples,
        **published.pages(docs.parent),
        **repository.pages(docs.parent),
        **words.pages(),
    }
    for folder in GENERATED:
        (docs / folder).mkdir(exist_ok=True)
        for old in (docs / folder).rglob("*"):
            if old.is_file() and old.relative_to(docs).as_posix() not in pages:
                old.unlink()
    for name, content in pages.items():
        path = docs / name
        data = content if isinstance(content, bytes) else content.encode()
        # Sphinx reads again what is newer: what did not change stays as it is.
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def _link_outside(app: Sphinx, page: str, source: list[str]) -> None:
    # In the repository these are folders and files outside of `docs/`; here they are pages.
    for target, there in _OUTSIDE.items():
        source[0] = re.sub(rf"\]\((?:\.\./)+{target}\)", f"](/{there}.md)", source[0])
