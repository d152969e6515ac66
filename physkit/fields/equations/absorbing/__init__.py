"""Layers along the sides of a box that let waves in and not out again."""
