"""How a loop is differentiated: the contract of adjoints, those with checkpoints, and forward mode."""
