"""Rigid bodies: their state, their free rotation, and the sites by which forces see them."""
