"""Elastic waves: the equations of a solid and their sources."""
