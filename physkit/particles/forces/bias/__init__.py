"""Collective variables, and forces that bias them."""
