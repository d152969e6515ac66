"""Specimens for the battery: one good term, integrator and observer of each kind, and broken ones."""
