"""Incompressible flows, shallow water, and drops in a flow."""
