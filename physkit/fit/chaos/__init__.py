"""Chaotic systems: how gradients grow, and fits in windows that are short enough."""
