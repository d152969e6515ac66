"""Arithmetic beside JAX's: safe derivatives, rounding, batched decisions, linear maps with a transpose."""
