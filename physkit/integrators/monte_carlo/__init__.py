"""Moves that are drawn at random and keep a Boltzmann distribution."""
