"""What adjoints repeat."""

from collections.abc import Callable
from typing import TypeAlias

from physkit.core import PyTree

# (carry, None) → (carry, records with a leading time axis). The second argument, None if left out, is there so
# that `lax.scan` takes a body as it is: without a wrapper there is a frame less per loop in tracebacks.
LoopBody: TypeAlias = Callable[..., tuple[PyTree, PyTree]]
