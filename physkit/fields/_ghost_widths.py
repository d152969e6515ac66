"""How many ghost cells a stencil along one axis needs."""


def ghost_widths(
    axis: int, dimension: int, low: int, high: int | None = None
) -> tuple[tuple[int, int], ...]:
    """`low` and `high` layers of ghosts along `axis`, none along the others; `high` is `low` if left out.

    Ghosts along one axis need no corners: over devices each face is exchanged once.
    """
    along = (low, low if high is None else high)
    return tuple(along if k == axis else (0, 0) for k in range(dimension))
