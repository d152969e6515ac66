"""Finite volumes: conservation laws, reconstruction, limiters, Riemann solvers."""
