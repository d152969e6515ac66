"""Integrators made of integrators: splittings, compositions, sub-steps."""
