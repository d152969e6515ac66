"""Links from the pages of sources back to the reference.

Names stand in the reference under the family or layer that exports them, and those of one source file under
several; Sphinx takes the first of these for all, so that some of its links lead to anchors that do not exist.
"""

import re
from typing import Any

from sphinx.application import Sphinx

_BLOCK = re.compile(
    r'(?P<start><div class="viewcode-block" id="(?P<name>[^"]+)">\s*)'
    r'<a class="viewcode-back" href="(?P<page>[^"#]*)#[^"]*">(?P<text>[^<]*)</a>'
)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", _mend_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _mend_links(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    if not pagename.startswith("_modules/") or "body" not in context:
        return
    objects = app.env.get_domain("py").data["objects"]
    module = pagename.removeprefix("_modules/").replace("/", ".")
    anchors = {}
    for path, entry in objects.items():
        page = app.builder.get_relative_uri(pagename, entry.docname)
        # `physkit.potentials.Morse.energy` is `Morse.energy` in its file.
        parts = path.split(".")
        for name in {parts[-1], ".".join(parts[-2:])}:
            # The file's own module first: two families may have a name in common.
            if (page, name) not in anchors or path == f"{module}.{name}":
                anchors[page, name] = entry.node_id

    def mended(block: re.Match) -> str:
        anchor = anchors.get((block["page"], block["name"]))
        if anchor is None:
            return block["start"]
        link = f'<a class="viewcode-back" href="{block["page"]}#{anchor}">{block["text"]}</a>'
        return block["start"] + link

    context["body"] = _BLOCK.sub(mended, context["body"])
