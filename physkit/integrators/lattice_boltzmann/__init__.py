"""Steps of populations on lattices."""
