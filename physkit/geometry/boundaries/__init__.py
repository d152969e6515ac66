"""Boundaries."""
