"""Spaces."""
