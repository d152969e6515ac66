"""Orbits, planets and universes."""
