"""Guards: conditions on a running simulation, checked at intervals or at the end of a chunk."""
