"""Numbers over members: reductions of chunks, stopping rule, bootstrap, means with derivatives."""
