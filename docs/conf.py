"""The documentation as a site: Sphinx, MyST and the pydata theme. `make docs` writes it to `site/`.

Pages are Markdown in this folder. `_site/` writes the rest from the code: the reference, the gallery, the
published numbers, the words of other codes. Nothing is fetched: links to other packages are in
`_site/references.toml`, equations become MathML.
"""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from _site import inventories  # noqa: E402

import physkit  # noqa: E402
from physkit._names import FAMILIES  # noqa: E402

# Families are attributes of physkit; autodoc imports modules.
sys.modules.update({f"physkit.{f}": getattr(physkit, f) for f in FAMILIES})

project = "physkit"
author = copyright = "The physkit developers"
release = version = physkit.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_codeautolink",
    "sphinx_copybutton",
    "sphinx_design",
    "_site.mathml",
    "_site.docstrings",
    "_site.links",
    "_site.source_links",
    "_site.generate",
]
exclude_patterns = [
    "_site",
    "images",
    "generated/front.md",
    "generated/last-runs.md",
    "gallery/*.ipynb",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
myst_links_external_new_tab = True

autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
add_module_names = False
python_display_short_literal_types = True
toc_object_entries_show_parents = "hide"

intersphinx_mapping = inventories.mapping()
codeautolink_global_preface = "import jax\nimport jax.numpy as jnp\nimport physkit as pk\n"
codeautolink_warn_on_missing_inventory = False
codeautolink_warn_on_failed_resolve = False
# A block of code whose names cannot be linked is still shown.
suppress_warnings = ["codeautolink.match_block", "codeautolink.match_name"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
highlight_language = "none"

html_theme = "pydata_sphinx_theme"
html_title = "physkit"
html_static_path = ["_static"]
html_search_scorer = str(DOCS / "_static/scorer.js")
html_css_files = ["physkit.css"]
html_copy_source = True
html_show_sourcelink = True
html_theme_options = {
    "logo": {"text": "physkit"},
    "header_links_before_dropdown": 8,
    "navigation_depth": 2,
    "show_toc_level": 2,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc", "sourcelink"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
