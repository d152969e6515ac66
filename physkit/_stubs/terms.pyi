# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.core import (
    AbstractTendency as AbstractTendency,
    AbstractTerm as AbstractTerm,
    Function as Function,
    Network as Network,
    Tendencies as Tendencies,
)
