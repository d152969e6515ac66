"""Every public name in code type links to its entry in the reference, as `pk.Pairwise` or `pk.run(…)`."""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from .names import documented_at

_NAME = re.compile(r"(?:pk\.|physkit\.)?([A-Za-z_][\w.]*)(\(.*\))?$")
# Words that are also everyday English or somebody else's: linked only when written with `pk.`.
_ORDINARY = {
    "data",
    "find",
    "fit",
    "grid",
    "init",
    "open",
    "param",
    "project",
    "random",
    "run",
    "stack",
    "static",
}


def setup(app: Sphinx) -> dict:
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class LinkNames(SphinxPostTransform):
    """Wraps literals that are public names in references, before references are resolved."""

    default_priority = 5

    def run(self, **kwargs: object) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            target = target_of(literal.astext())
            if (
                target is None
                or isinstance(literal.parent, nodes.reference | addnodes.pending_xref)
                or (self.env.docname.startswith("coming-from/") and _is_theirs(literal))
            ):
                continue
            reference = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refdoc=self.env.docname,
                refexplicit=True, refwarn=False,
            )  # fmt: skip
            literal.replace_self(reference)
            reference += literal


def _is_theirs(literal: nodes.literal) -> bool:
    """Whether it stands in the first column of a table: there the names are those of another code."""
    node = literal
    while node is not None and not isinstance(node, nodes.entry):
        node = node.parent
    return node is not None and node.parent.index(node) == 0


def target_of(code: str) -> str | None:
    """The full name under which the reference has what `code` names, if it has."""
    found = _NAME.match(code)
    if found is None or "\n" in code:
        return None
    name = found[1]
    if name in _ORDINARY and not code.startswith(("pk.", "physkit.")) and not found[2]:
        return None
    return documented_at().get(name)
