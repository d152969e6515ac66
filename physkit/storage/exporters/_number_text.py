"""Numbers as text, for formats that are text."""


def shortest_text(x: object) -> str:
    """The shortest text that reads back as the same number, as NumPy's scalars print."""
    # Not `repr`, which names the type (`np.float32(0.1)`), nor by way of float, which shows digits that
    # float32 does not have (0.10000000149011612).
    return str(x)
