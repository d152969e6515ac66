"""Names for arguments whose types would have to be imported from matplotlib, which is slow.

They are checked by what is done with them, not at run time.
"""

from typing import Any, TypeAlias

Axes: TypeAlias = Any  # matplotlib.axes.Axes, or its three-dimensional kind
Artist: TypeAlias = Any  # what matplotlib has drawn and a color bar can belong to
Picture: TypeAlias = Any  # PIL.Image.Image
Numbers: TypeAlias = Any  # whatever `numpy.asarray` makes an array of
