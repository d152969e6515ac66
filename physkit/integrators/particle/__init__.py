"""Particle."""
