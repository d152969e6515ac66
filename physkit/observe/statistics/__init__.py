"""Statistics that observers accumulate while a simulation runs, or that are made from its records."""
