"""All Riemann solvers, and what cases are called."""

import physkit as pk

SOLVERS = [pk.riemann.Rusanov(), pk.riemann.HLL(), pk.riemann.HLLC(), pk.riemann.ExactRiemann()]

name = lambda x: type(x).__name__
