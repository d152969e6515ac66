"""Boundaries: kinds, values on walls, and one kind for each side of a field."""
