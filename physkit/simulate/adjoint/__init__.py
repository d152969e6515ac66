"""Adjoint."""
