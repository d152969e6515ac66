"""Small systems of ordinary differential equations."""
