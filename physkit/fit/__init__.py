"""Floor 10: which numbers of a model, fits of them, and how far to trust their derivatives."""

from ._where import Selection as Selection, Where as Where, select as select
