"""Sides of a box as an electromagnetic field sees them."""

from ._boundary import AbstractBoundary, Dirichlet, Mirror


class PerfectConductor(AbstractBoundary):
    """A perfect electric conductor: no electric field along it, no magnetic field through it.

    Waves are reflected, the electric field with the opposite sign. As the boundary of a vector field alone it
    is that of the electric field.
    """

    def ghosts(self, near, width, wall):
        return wall.mirror_layers(near, width) * (-wall.normal_sign(near))

    def for_component(self, index, axis):
        return Mirror() if index == axis else Dirichlet(0.0)


class PerfectMagneticConductor(AbstractBoundary):
    """A perfect magnetic conductor: no magnetic field along it, no electric field through it.

    The plane of a symmetry: waves are reflected with the electric field as it was. As the boundary of a vector
    field alone it is that of the electric field.
    """

    def ghosts(self, near, width, wall):
        return wall.mirror_layers(near, width) * wall.normal_sign(near)

    def for_component(self, index, axis):
        return Dirichlet(0.0) if index == axis else Mirror()
