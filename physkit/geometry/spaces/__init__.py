"""Spaces, points of cells, and slabs of a space over devices."""
