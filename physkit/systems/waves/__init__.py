"""Linear and nonlinear waves, and wave packets of quantum mechanics."""
