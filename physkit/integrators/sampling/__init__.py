"""Sampling of rare events: biases that grow, replicas that exchange, minima that are searched."""
