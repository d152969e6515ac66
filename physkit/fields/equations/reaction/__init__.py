"""Equations of reactions with diffusion."""
