"""Decomposition."""
