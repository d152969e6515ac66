"""HTML without scripts: trees, tables and small pictures of numbers, for notebooks and reports."""

from ._numbers import (
    describe_shape as describe_shape,
    describe_values as describe_values,
    read as read,
    sample as sample,
)
from ._pictures import (
    curve as curve,
    data_uri as data_uri,
    field_picture as field_picture,
    image as image,
    points as points,
)
from ._series import series_table as series_table
from ._text import (
    Markup as Markup,
    escape as escape,
    expandable as expandable,
    facts as facts,
    fragment as fragment,
    page as page,
    paragraph as paragraph,
    span as span,
    table as table,
)
from ._tree import render_tree as render_tree, tree as tree
