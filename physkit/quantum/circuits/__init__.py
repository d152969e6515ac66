"""Circuits: gates made into blocks, applied, and run backwards."""
