"""Runge_kutta."""
