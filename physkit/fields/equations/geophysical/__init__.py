"""Flows that a planet's rotation keeps in balance: layers, and a surface."""
