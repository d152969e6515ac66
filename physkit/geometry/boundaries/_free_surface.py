"""The side of an elastic body that nothing holds."""

from ._boundary import AbstractBoundary, Outflow


class FreeSurface(AbstractBoundary):
    """A side of an elastic body without traction: σ·n = 0, as on the ground.

    `ElasticField.of` makes boundaries of the single components of it. As the boundary of a velocity alone it is
    the outermost value.
    """

    def ghosts(self, near, width, wall):
        return Outflow().ghosts(near, width, wall)
