"""Names for arguments whose types would have to be imported, for which `physkit --help` should not wait."""

from typing import Any, TypeAlias

Axes: TypeAlias = Any  # matplotlib.axes.Axes
Json: TypeAlias = Any  # dicts, lists, text, numbers and None
Recording: TypeAlias = Any  # physkit.storage.Recording
RunProgress: TypeAlias = Any  # physkit.simulate.RunProgress
Series: TypeAlias = Any  # physkit.storage.Series
Simulation: TypeAlias = Any  # physkit.simulate.Simulation
State: TypeAlias = Any  # physkit.core.State
Sweep: TypeAlias = Any  # physkit.ensemble.Sweep
StopRequest: TypeAlias = Any  # physkit.simulate.StopRequest
SweepFolder: TypeAlias = Any  # physkit.ensemble.SweepFolder
SweepResults: TypeAlias = Any  # physkit.ensemble.Ensemble
ValidationCase: TypeAlias = Any  # physkit.testing.validation.Case
Probe: TypeAlias = Any  # what physkit.simulate.probe measures of a run
