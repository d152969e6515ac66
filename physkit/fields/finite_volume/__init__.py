"""Finite_volume."""
