"""Liquids, and particles in a heat bath."""
