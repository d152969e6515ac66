"""Sound and elastic waves: a monopole, the ground."""
