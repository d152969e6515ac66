"""Integrators of equations with a symbol, by Fourier coefficients: exponential, implicit–explicit, exact."""
