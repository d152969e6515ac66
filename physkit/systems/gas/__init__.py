"""Compressible gas: shocks, blasts and sound."""
