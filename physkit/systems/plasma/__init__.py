"""Plasmas in one dimension, by particle-in-cell."""
