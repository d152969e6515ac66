"""Equations as MathML, which browsers draw themselves: no script, no font, no network."""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.writers.html5 import HTML5Translator


def setup(app: Sphinx) -> dict:
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    app.connect(
        "config-inited", lambda app, config: setattr(config, "html_math_renderer", "mathml")
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _visit_inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(to_mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _visit_block(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(
        f'<div class="equation-line">{to_mathml(node.astext(), as_block=True)}</div>\n'
    )
    raise nodes.SkipNode


def to_mathml(tex: str, *, as_block: bool) -> str:
    """MathML of an equation in TeX."""
    try:
        return tex2mathml(tex, as_block=as_block)
    except (MathError, SyntaxError) as error:
        raise ExtensionError(f"an equation cannot be read: {tex!r}: {error}") from error
