"""Integrators of particles under forces: Verlet and its compositions, Boris, thermostats."""
