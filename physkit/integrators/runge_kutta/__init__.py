"""Integrators of rates: explicit Runge–Kutta methods, stochastic ones, and the solvers of diffrax."""
