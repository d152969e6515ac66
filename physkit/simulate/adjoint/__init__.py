"""adjoint."""
