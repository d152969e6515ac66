"""grad, div, curl and ∇² of fields whose components all sit in one place."""

from physkit.core import ShapeError, explain_call

from .._field import Field
from .._stack import stack
from ._derivative_schemes import AbstractScheme, Central


@explain_call
def derivative(
    u: Field, axis: int | str, power: int = 1, scheme: AbstractScheme | None = None
) -> Field:
    """∂ᵖu/∂xᵖ along one axis; central differences of second order unless a `scheme` is given."""
    return (scheme or Central()).derivative(u, u.grid.axis(axis), power)


@explain_call
def gradient(u: Field, scheme: AbstractScheme | None = None) -> Field:
    """∇u of a scalar field: a vector field."""
    if u.components:
        raise ShapeError("the gradient is that of a scalar field; take components one by one: v[0]")
    return stack([derivative(u, k, 1, scheme) for k in range(u.grid.dimension)])


@explain_call
def divergence(v: Field, scheme: AbstractScheme | None = None) -> Field:
    """∇·v of a vector field: a scalar field."""
    _require_vector(v, "divergence")
    first, *rest = (derivative(part, k, 1, scheme) for k, part in enumerate(_parts(v)))
    return sum(rest, first)


@explain_call
def curl(v: Field, scheme: AbstractScheme | None = None) -> Field:
    """∇×v: a vector field in three dimensions, its z component ∂v_y/∂x − ∂v_x/∂y in two."""
    _require_vector(v, "curl")
    parts = _parts(v)

    def rotation(i: int, j: int) -> Field:
        """∂vⱼ/∂xᵢ − ∂vᵢ/∂xⱼ."""
        return derivative(parts[j], i, 1, scheme) - derivative(parts[i], j, 1, scheme)

    if v.grid.dimension == 2:
        return rotation(0, 1)
    if v.grid.dimension == 3:
        return stack([rotation(1, 2), rotation(2, 0), rotation(0, 1)])
    raise ShapeError("a field on a line has no curl")


@explain_call
def laplacian(u: Field, scheme: AbstractScheme | None = None) -> Field:
    """∇²u, per component; u may be a vector field."""
    first, *rest = (derivative(u, k, 2, scheme) for k in range(u.grid.dimension))
    return sum(rest, first)


def _parts(v: Field) -> list[Field]:
    return [v[k] for k in range(v.grid.dimension)]


def _require_vector(v: Field, what: str) -> None:
    if not v.vector:
        raise ShapeError(
            f"the {what} is that of a vector field; make one with stack(…), or vector=True"
        )
