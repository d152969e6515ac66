"""Reversible."""
