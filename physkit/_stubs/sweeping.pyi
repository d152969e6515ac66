# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.ensemble import (
    Converged as Converged,
    LocalWorkers as LocalWorkers,
    Retry as Retry,
    SlurmArray as SlurmArray,
    Sweep as Sweep,
    SweepProgress as SweepProgress,
    sweep as sweep,
)
