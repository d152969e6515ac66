"""Integrators of rates: explicit Runge–Kutta methods, and the solvers of diffrax."""
