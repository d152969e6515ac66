# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fields.finite_volume import (
    AbstractLimiter as AbstractLimiter,
    Minmod as Minmod,
    MonotonizedCentral as MonotonizedCentral,
    Superbee as Superbee,
    VanLeer as VanLeer,
)
