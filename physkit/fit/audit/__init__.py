"""Gradient audits: derivatives of a run held against the run itself."""
