# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fields.operators import (
    AbstractScheme as AbstractScheme,
    Central as Central,
    Spectral as Spectral,
)
