"""Descent of a loss by optimizers of optax, over batches of the data, kept in a file."""
