"""Spins on lattices that order below a temperature."""
