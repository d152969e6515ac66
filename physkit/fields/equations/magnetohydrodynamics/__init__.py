"""Gases that conduct, and the magnetic fields frozen into them."""
