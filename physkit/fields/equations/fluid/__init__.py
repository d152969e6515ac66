"""Equations of flows: gases, shallow water, incompressible fluids."""
