"""Rigid bodies in an incompressible flow, each moving the other."""
